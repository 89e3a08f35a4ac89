"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from leasehold.protocol._values import client, events, fence, inputs, ops, runs, stores, types
from leasehold.protocol._values.client import *  # noqa: F403
from leasehold.protocol._values.events import *  # noqa: F403
from leasehold.protocol._values.fence import *  # noqa: F403
from leasehold.protocol._values.inputs import *  # noqa: F403
from leasehold.protocol._values.ops import *  # noqa: F403
from leasehold.protocol._values.runs import *  # noqa: F403
from leasehold.protocol._values.stores import *  # noqa: F403
from leasehold.protocol._values.types import *  # noqa: F403

CLASSES: dict[str, type] = {
    **client.CLASSES,
    **events.CLASSES,
    **fence.CLASSES,
    **inputs.CLASSES,
    **ops.CLASSES,
    **runs.CLASSES,
    **stores.CLASSES,
    **types.CLASSES,
}
"""By the names that the WIT has for them."""

__all__ = [
    "Access",
    "Applied",
    "AttemptLimit",
    "Attempts",
    "Birth",
    "CommandError",
    "Completion",
    "Config",
    "Credentials",
    "DenialKind",
    "Dialect",
    "Durability",
    "Event",
    "Failure",
    "Fault",
    "FaultKind",
    "Holding",
    "Input",
    "LeaseHolder",
    "Limits",
    "LockOp",
    "LockOptions",
    "LostReason",
    "Membership",
    "NextAttempt",
    "NodeConfig",
    "Notify",
    "Now",
    "ObjectsService",
    "Occurrence",
    "Op",
    "Outcome",
    "Outcomes",
    "Output",
    "Plaintext",
    "Poll",
    "Quorum",
    "Refusal",
    "RefusalTime",
    "Rejected",
    "Renewal",
    "ReplaceAnswer",
    "ReplaceStep",
    "Response",
    "ResultKind",
    "Revocation",
    "Row",
    "RunOptions",
    "RunPlan",
    "RunRecord",
    "RunResult",
    "Seen",
    "SettingError",
    "SortKey",
    "SqlValue",
    "Stats",
    "Stepped",
    "Store",
    "Wait",
    "ZoneOffset",
]
