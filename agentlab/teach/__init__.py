"""What a lesson needs besides the agent: guesses, checks, hints, and a memory of what is done. Notebooks reach it as `lab`."""

from agentlab.teach.check import Verdict, check, hint, solution
from agentlab.teach.lesson import beside, crashes, use
from agentlab.teach.predict import predict, reveal
from agentlab.teach.progress import progress

__all__ = ["Verdict", "beside", "check", "crashes", "hint", "predict", "progress", "reveal", "solution", "use"]
