"""A Jupyter kernel as a client sees it: runs the cells of notebooks and prints their outputs.

usage: kernel_peer.py NOTEBOOK... ; one line of JSON for each: [[output of cell 1, ...], ...]"""
import json
import sys

from jupyter_client.manager import start_new_kernel

REPLY_S = 60


def outputs(client, code):
    """What a notebook would hold after the cell: updates and clear_output are applied."""
    found, shown, clear = [], {}, [False]

    def hook(message):
        kind, content = message["msg_type"], message["content"]
        if kind == "clear_output":
            clear[0] = content["wait"]
            if not content["wait"]:
                found.clear()
            return
        if kind not in ("stream", "display_data", "execute_result", "error", "update_display_data"):
            return
        if clear[0]:
            found.clear()
            clear[0] = False
        name = content.get("transient", {}).get("display_id")
        if kind == "update_display_data":
            shown[name]["data"] = content["data"]
        elif kind == "stream":
            if found and found[-1]["type"] == content["name"]:
                found[-1]["text"] += content["text"]
            else:
                found.append({"type": content["name"], "text": content["text"]})
        elif kind == "error":
            found.append({"type": "error", "name": content["ename"], "message": content["evalue"]})
        else:
            found.append({"type": "result", "data": content["data"]})
            shown[name] = found[-1]
    client.execute_interactive(code, timeout=REPLY_S, output_hook=hook, stop_on_error=False)
    return found


def main():
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            cells = ["".join(cell["source"]) for cell in json.load(file)["cells"]]
        manager, client = start_new_kernel(kernel_name="python3")
        try:
            print(json.dumps([outputs(client, code) for code in cells]), flush=True)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
