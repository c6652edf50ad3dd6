"""slack_sdk as the other side of the Web API and the Events API.

First line: a signing secret, the time, bodies and our own signature of each; slack_sdk's signatures are answered, and what
its verifier says to ours. Second line: calls of ours; what slack_sdk's client or its models of blocks do not take is
answered.
"""

import inspect
import json
import sys

from slack_sdk import WebClient
from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block
from slack_sdk.signature import Clock, SignatureVerifier


class Fixed(Clock):
    def __init__(self, now):
        self.fixed = now

    def now(self):
        return self.fixed


def signatures(question):
    verifier = SignatureVerifier(question["secret"], Fixed(question["now"]))
    time = str(question["now"])
    made = [verifier.generate_signature(timestamp=time, body=body) for body in question["bodies"]]
    accepted = [
        verifier.is_valid_request(body, headers) for body, headers in zip(question["bodies"], question["headers"])
    ]
    return {"signatures": made, "accepted": accepted}


def refused(call):
    """Why slack_sdk does not take a call; none = it does."""
    name = call["method"].replace(".", "_")
    method = getattr(WebClient, name, None)
    if method is None:
        return "unknown method"
    arguments = dict(call["arguments"])
    known = inspect.signature(method).parameters
    unknown = [field for field in arguments if field not in known]
    if unknown:
        return f"unknown arguments {unknown}"
    needed = [name for name, it in known.items() if it.default is it.empty and name not in ("self", "kwargs")]
    missing = [name for name in needed if name not in arguments]
    if missing:
        return f"missing arguments {missing}"
    for block in arguments.get("blocks") or []:
        try:
            parsed = Block.parse(block)
            if parsed is None:
                return f"unknown block {block.get('type')}"
            if parsed.to_dict() != block:
                return f"another block: {parsed.to_dict()}"
        except (SlackObjectFormationError, TypeError) as error:
            return f"{block.get('type')}: {error}"
    return None


def answer(line):
    print(json.dumps(line), flush=True)


def main():
    answer(signatures(json.loads(sys.stdin.readline())))
    calls = json.loads(sys.stdin.readline())
    problems = [{"call": call, "problem": refused(call)} for call in calls]
    answer({"checked": len(problems), "refused": [problem for problem in problems if problem["problem"]]})


main()
