"""Floor 20: the page where a gradient can be tried, `python -m symgrad play`.

`server.py` answers the page's requests on the loopback address, `worker.py` runs the text in a
process of its own, `share.py` writes what is shown as one file.
"""
