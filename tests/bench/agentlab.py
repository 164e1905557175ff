"""agentlab: every guard on, chat completions through the SDK."""

VENV, IMPORT, FLOOR = "agentlab", "import agentlab", "naked_bypass_async"


def build(ctx):
    from agentlab import Agent, Cap, climb, models

    guards = climb(cap=Cap(ctx.max_steps)) if ctx.max_steps else climb()
    agent = Agent(models.openai(ctx.model, client=ctx.openai(True)), ctx.fns, guards)

    async def run(prompt):
        return (await agent.run(prompt)).answer

    return run
