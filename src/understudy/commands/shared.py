"""Options that several commands take, each declared once. Commands set their own defaults."""

from pathlib import Path
from typing import Annotated

import typer

Activation = Annotated[str, typer.Option(help="erf, relu, softplus[:β], sigmoid, tanh, hermite:ρ, …")]
AnyActivation = Annotated[
    str, typer.Option(help="erf, relu, softplus[:β], tanh, gelu, hermite:ρ, …; a formula, or your module:function.")
]
StudentActivation = Annotated[str | None, typer.Option(help="The students' activation. Default: the teacher's.")]
Teachers = Annotated[int, typer.Option(help="Number k of orthonormal teachers with outgoing weights 1.")]
TeacherFile = Annotated[
    Path | None, typer.Option(help="Your own teacher: .npz, .json, .npy or .csv, as for fit --teacher.")
]
Angles = Annotated[str | None, typer.Option(help="Angles of teachers in the plane, in units of π: 0,0.25,1.5.")]
Dim = Annotated[int | None, typer.Option(help="Input dimension d. Default: k + 1.")]
Outgoing = Annotated[
    str | None, typer.Option(help="trained, or fixed at 1 (a soft committee machine).", show_default="trained")
]
Sphere = Annotated[
    bool, typer.Option("--sphere", help="Unit-norm students and teachers, uniform starts; hermite:ρ only.")
]
Mean = Annotated[str | None, typer.Option(help="Mean of the inputs: 0,0.5,… or a file.")]
InputCovariance = Annotated[
    Path | None, typer.Option(help="File with the covariance of the inputs, or their variances.")
]
Data = Annotated[Path | None, typer.Option(help="Data instead of a teacher: .npz with inputs and targets, or .csv.")]
Target = Annotated[
    str | None, typer.Option(help="With --data: target columns, or the array of targets.", show_default="last")
]
DataCost = Annotated[
    str | None, typer.Option(help="With --data: squared, cross-entropy or logistic.", show_default="squared")
]
Penalty = Annotated[float | None, typer.Option(help="With --data: λ of the penalty λ‖W‖².", show_default="none")]
Seeds = Annotated[str, typer.Option(help="Number of seeds, or a list: 20, or 0,3,7, or 5-9.")]
StoredSeed = Annotated[int | None, typer.Option(help="Seed of the network in a stored fit. Default: the best.")]
StoredNetworkFile = Annotated[
    Path,
    typer.Argument(help="An .npz archive of weights W1…WL, b1…bL, the .nc of a stored fit, or a PyTorch chain."),
]
HiddenLayer = Annotated[int, typer.Option(help="Hidden layer of a deeper network in --result; 0 is the first.")]
Limit = Annotated[float | None, typer.Option(help="Stop after this many seconds; finished seeds are kept.")]
Jobs = Annotated[int | None, typer.Option(help="Number of processes. Default: up to one per core.")]
Cluster = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:8786.")]
SchedulerFile = Annotated[Path | None, typer.Option(help="Scheduler file of a Dask cluster.")]
LedgerDirectory = Annotated[
    Path | None, typer.Option(help="Directory of the ledger's files, instead of the packaged one.")
]
FigureOut = Annotated[Path | None, typer.Option(help="Directory for the stored result and the figure.")]
TableOut = Annotated[Path | None, typer.Option(help="Directory for the figure and the table as JSON.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
