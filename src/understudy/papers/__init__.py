"""Executable papers: their claims, what we measure of each, and the verdict."""

from understudy.papers.check import Check, at_least, at_most, between, close, equal, holds
from understudy.papers.claim import Claim, Progress, Scale, Settings
from understudy.papers.ledger import Entry, entries, outdated, record
from understudy.papers.measurement import Measurement, Status
from understudy.papers.registry import PAPERS, Paper, UnknownNameError, claims_of, find_claims, find_paper
from understudy.papers.result import BadRecordError, Result
from understudy.papers.runner import Event, Reproduction, Run, reproduce
