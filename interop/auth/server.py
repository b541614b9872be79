"""A server on the package `mcp`, 1.x or 2.x, that requires a token.

server.py '{"issuer": …, "resource": …}'

`whoami` needs `mcp:read`. The package supports scopes for the whole server only.
"""
import asyncio
import json
import pathlib
import sys
import warnings

import jwt
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings

sys.path.append(str(pathlib.Path(__file__).parent.parent / "python"))
from free_port import on_free_port

try:
    from mcp.server import MCPServer
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer

warnings.simplefilter("ignore")
task = json.loads(sys.argv[1])


class Verifier:
    keys = jwt.PyJWKClient(f"{task['issuer']}/jwks")

    async def verify_token(self, token):
        try:
            key = await asyncio.to_thread(self.keys.get_signing_key_from_jwt, token)
            claims = jwt.decode(token, key.key, ["RS256"], audience=task["resource"], issuer=task["issuer"])
        except jwt.PyJWTError:
            return None
        fields = {"client_id": claims["client_id"], "scopes": claims["scope"].split(), "expires_at": claims["exp"]}
        return AccessToken(token=token, resource=claims["aud"], **fields)


settings = AuthSettings(issuer_url=task["issuer"], resource_server_url=task["resource"], required_scopes=["mcp:read"])
server = MCPServer("guarded", log_level="WARNING", auth=settings, token_verifier=Verifier())


@server.tool()
def whoami() -> str:
    token = get_access_token()
    subject = jwt.decode(token.token, options={"verify_signature": False})["sub"]
    return json.dumps({"subject": subject, "client": token.client_id, "scopes": token.scopes})


on_free_port("/mcp", lambda: server.run("streamable-http"))
