"""Claims of Ottlik, "Gradient Flow Dynamics of Teacher-Student Distillation with the Squared Loss"."""

from understudy.papers.tight_balance.claims import CLAIMS as CLAIMS
