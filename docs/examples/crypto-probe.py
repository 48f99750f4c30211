#!/usr/bin/env python3
"""A probe for the crypto cards of a made-up company: see docs/probe-guide.md.

Each card is a folder below DIR (the setting `cards`), with the files `serial`, `numa` and `health`.
"""
import json
import os
import select
import sys
import time

OUT = os.fdopen(3, "w", buffering=1)  # One JSON object per line; the standard output is for people.
BEAT = 2.0  # Seconds between two signs of life.


def tell(kind, **fields):
    OUT.write(json.dumps({"type": kind, **fields}) + "\n")


def read(folder, name):
    with open(os.path.join(folder, name)) as file:
        return file.read().strip()


def look(cards):
    """Every card that can be read, and those that cannot, each by its number."""
    devices, unreadable = [], []
    for number, name in enumerate(sorted(os.listdir(cards))):
        folder = os.path.join(cards, name)
        try:
            devices.append({
                "id": read(folder, "serial"),
                "index": str(number),
                "numa": int(read(folder, "numa")),
                "attributes": {"productName": "Company Crypto Accelerator", "slot": name},
                "nodes": [{"path": f"/dev/{name}", "role": "own"}],
            })
        except (OSError, ValueError) as error:
            failure = {"call": f"read {folder}", "code": str(error), "fatal": True}
            unreadable.append({"card": str(number), "failure": failure})
    return {"devices": devices, "unreadable": unreadable}


def check(cards, report):
    """The check-up of each card: one condition, named by this vendor."""
    for device in report["devices"]:
        health = read(os.path.join(cards, device["attributes"]["slot"]), "health")
        state = "ok" if health == "good" else "critical"
        condition = {"name": "self-test", "state": state, "reason": health}
        reading = {"values": {"working": {}}, "conditions": [condition]}
        tell("checkup", device=device["id"], reading=reading)


def lines(descriptor, wait):
    """The commands that come within a time, and whether the input has ended."""
    if not select.select([descriptor], [], [], wait)[0]:
        return [], False
    data = os.read(descriptor, 65536)
    return [json.loads(line) for line in data.splitlines() if line.strip()], not data


def main():
    settings = json.loads(sys.stdin.buffer.raw.readline())
    cards = settings["backend"]["cards"]
    period = settings["period_millis"] / 1000
    every = settings["checks"]["working_millis"] / 1000
    tell("hello", protocol=2, probe="crypto", version="1.0")
    told, next_look, next_check = None, 0.0, 0.0
    while True:
        now = time.monotonic()
        if now >= next_look:
            report, next_look = look(cards), now + period
            if report != told:
                tell("report", **report)
                told, next_check = report, 0.0
            for device in report["devices"]:
                tell("sample", device=device["id"], telemetry={})  # It was looked at.
        if every and now >= next_check:
            check(cards, told)
            next_check = now + every
        tell("beat")
        wait = max(0.0, min(BEAT, next_look - now, next_check - now if every else BEAT))
        commands, ended = lines(sys.stdin.fileno(), wait)
        if ended or any(command["type"] == "stop" for command in commands):
            return
        if any(command["type"] == "refresh" for command in commands):
            told, next_look = None, 0.0


if __name__ == "__main__":
    main()
