// A server on the package @modelcontextprotocol/server 2.x that requires a token.
//
//   server.mjs '{"issuer": …, "resource": …, "tokens": "jwt" | "opaque"}'
//
// `whoami` needs the scope `mcp:read`, and `write` needs `mcp:write`.
import { createServer } from 'node:http';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
    McpServer, OAuthError, OAuthErrorCode, createMcpHandler, getOAuthProtectedResourceMetadataUrl, oauthMetadataResponse,
    requireBearerAuth, requireScopes,
} from '@modelcontextprotocol/server';

const { issuer, resource, tokens } = JSON.parse(process.argv[2]);
const resourceServerUrl = new URL(resource);

function guarded() {
    const server = new McpServer({ name: 'guarded', version: '1' });
    server.registerTool('whoami', {}, ({ http: { authInfo } }) => {
        const { clientId, scopes, extra } = authInfo;
        return say(JSON.stringify({ subject: extra.sub, client: clientId, scopes }));
    });
    server.registerTool('write', { scopeChallenge: requireScopes('mcp:write') }, () => say('written'));
    return server;
}

const say = text => ({ content: [{ type: 'text', text }] });

// The metadata of the authorization server is at one of three URLs.
async function metadata() {
    const { origin, pathname } = new URL(issuer);
    const path = pathname === '/' ? '' : pathname;
    for (const place of [`oauth-authorization-server${path}`, `openid-configuration${path}`]) {
        const response = await fetch(`${origin}/.well-known/${place}`);
        if (response.ok) return response.json();
    }
    return (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
}

const oauthMetadata = await metadata();
const keys = createRemoteJWKSet(new URL(oauthMetadata.jwks_uri));

const verifiers = {
    jwt: async token => (await jwtVerify(token, keys, { issuer, audience: resource, typ: 'at+jwt' })).payload,
    opaque: async token => {
        const headers = { authorization: `Basic ${btoa('server:of+the+server')}` };
        const asked = { method: 'POST', headers, body: new URLSearchParams({ token }) };
        const claims = await (await fetch(oauthMetadata.introspection_endpoint, asked)).json();
        if (!claims.active) throw new Error('not active');
        return claims;
    },
};

async function verifyAccessToken(token) {
    const claims = await verifiers[tokens](token).catch(error => {
        throw new OAuthError(OAuthErrorCode.InvalidToken, error.message);
    });
    return {
        token,
        clientId: claims.client_id,
        scopes: claims.scope?.split(' ') ?? [],
        expiresAt: claims.exp,
        resource: new URL([claims.aud].flat()[0]),
        extra: claims,
    };
}

const gate = requireBearerAuth({
    verifier: { verifyAccessToken },
    requiredScopes: ['mcp:read'],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resourceServerUrl),
    expectedResource: resourceServerUrl,
});
const handler = createMcpHandler(guarded, { legacy: 'stateless' });

async function serve(request) {
    const scopesSupported = ['mcp:read', 'mcp:write'];
    const document = oauthMetadataResponse(request, { oauthMetadata, resourceServerUrl, scopesSupported });
    if (document) return document;
    const authInfo = await gate(request);
    return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
}

const server = createServer(toNodeHandler({ fetch: serve }));
server.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${server.address().port}/mcp`));
