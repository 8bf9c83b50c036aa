"""One call of each kind by the client that openapi-python-client makes of api/openapi.json: call.py URL TOKEN"""
import sys

from cupel_client import AuthenticatedClient
from cupel_client.api.about import languages
from cupel_client.api.runs import get_run, run
from cupel_client.api.sessions import end_session, new_session, run_in_session
from cupel_client.models import CellRequest, Error, Result, RunRequest, Session, SessionRequest

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
result = run.sync(client=client, body=RunRequest(code="print('typed'); 6 * 7"))
assert isinstance(result, Result) and result.stdout == "typed\n" and result.text == "42", result
assert get_run.sync(result.run, client=client).run == result.run
refused = run.sync(client=client, body=RunRequest(code="1", profile="nobody"))
assert isinstance(refused, Error) and refused.error.field == "profile", refused
session = new_session.sync(client=client, body=SessionRequest(language="python"))
assert isinstance(session, Session), session
run_in_session.sync(session.session, client=client, body=CellRequest(code="x = 20"))
assert run_in_session.sync(session.session, client=client, body=CellRequest(code="x + 1")).text == "21"
assert end_session.sync(session.session, client=client).status == "ended"
assert languages.sync(client=client).languages[0].name == "python"
print("called")
