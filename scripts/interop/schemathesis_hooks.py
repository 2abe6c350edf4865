"""Adds a unique number to each room id: schemathesis sends some ids twice, which is no fault of the API."""

import itertools
import re

import schemathesis

numbers = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if case.operation.label != "POST /room" or not isinstance(body, dict):
        return
    room_id = body.get("roomId")
    if isinstance(room_id, str) and re.fullmatch("[A-Za-z0-9-]{1,240}", room_id):
        case.body = {**body, "roomId": f"{room_id}-{next(numbers)}"}
