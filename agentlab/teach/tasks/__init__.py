"""The tasks of all lessons, by id, in the order in which they are met."""

from agentlab.teach.task import Task
from agentlab.teach.tasks import cap_steps, isolate_failures, naked_loop, start_here

TASKS: dict[str, Task] = {
    task.id: task for lesson in (start_here, naked_loop, isolate_failures, cap_steps) for task in lesson.TASKS
}
