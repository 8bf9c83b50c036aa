#!/usr/bin/env python3
"""Print members of a result as JSON, one in a line: cupel run --json ... | members.py MEMBER...

The items of a list are a line each."""
import json
import sys

result = json.load(sys.stdin)
for name in sys.argv[1:]:
    value = result.get(name)
    for item in value if isinstance(value, list) else [value]:
        print(f"{name}:", json.dumps(item, ensure_ascii=False))
