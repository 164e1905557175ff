"""`python -m agentlab` is the same command line as `agentlab`: it works where the script is not on the PATH."""

from agentlab.cli import main

raise SystemExit(main())
