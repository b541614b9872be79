// Tests a server that requires a token with the client of @modelcontextprotocol/client 2.x; prints a JSON line per check.
//
//   client.mjs '{"url", "revision", "issuer", "client", "checks", …}'
//
// `client` is the client identity: `dynamic`, `known`, `document`, `service` (with a secret) or `signer` (with a key). run.py has the
// expectations.
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
    Client, ClientCredentialsProvider, DpopSession, PrivateKeyJwtProvider, StreamableHTTPClientTransport, UnauthorizedError,
} from '@modelcontextprotocol/client';
import { visit } from './browser.mjs';

const task = JSON.parse(process.argv[2]);
const redirectUrl = 'http://127.0.0.1:9/callback';

// A user with a browser, and a store for the login.
class Login {
    redirectUrl = redirectUrl;
    clientMetadata = {
        client_name: 'interop',
        redirect_uris: [redirectUrl],
        application_type: 'native',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
    };
    information = task.client === 'known' ? { client_id: 'known', issuer: task.issuer } : undefined;
    clientMetadataUrl = task.client === 'document' ? task.document : undefined;
    dpop = task.dpop ? () => this.session : undefined;

    state = () => (this.sent = randomUUID());
    clientInformation = () => this.information;
    saveClientInformation = information => void (this.information = information);
    tokens = () => this.kept;
    saveTokens = tokens => void (this.kept = tokens);
    codeVerifier = () => this.verifier;
    saveCodeVerifier = verifier => void (this.verifier = verifier);
    discoveryState = () => this.discovery;
    saveDiscoveryState = state => void (this.discovery = state);

    invalidateCredentials(what) {
        if (what === 'all' || what === 'tokens') this.kept = undefined;
        if (what === 'all' || what === 'client') this.information = undefined;
        if (what === 'all' || what === 'discovery') this.discovery = undefined;
    }

    async redirectToAuthorization(url) {
        this.came = new URL(await visit(url.href, redirectUrl)).searchParams;
        if (this.came.get('state') !== this.sent) throw new Error('the state is another one');
    }
}

async function provider() {
    const known = { clientId: task.client, expectedIssuer: task.issuer, scope: 'mcp:read' };
    if (task.client === 'service') return new ClientCredentialsProvider({ ...known, clientSecret: task.secret });
    if (task.client === 'signer') {
        return new PrivateKeyJwtProvider({ ...known, privateKey: readFileSync(task.key, 'utf8'), algorithm: 'ES256' });
    }
    const login = new Login();
    login.session = task.dpop ? await DpopSession.create() : undefined;
    return login;
}

let client, transport, old;
const login = await provider();

// The package starts the login and fails; after the callback the call is repeated.
async function authorized(action) {
    try {
        return await action();
    } catch (error) {
        if (!(error instanceof UnauthorizedError) || !login.came) throw error;
        await transport.finishAuth(login.came);
        login.came = undefined;
        return action();
    }
}

async function connect() {
    const mode = task.revision >= '2026-07-28' ? 'auto' : 'legacy';
    client = new Client({ name: 'interop', version: '1' }, { versionNegotiation: { mode } });
    transport = new StreamableHTTPClientTransport(new URL(task.url), { authProvider: login });
    await client.connect(transport);
}

const call = async name => {
    const { content, isError } = await authorized(() => client.callTool({ name, arguments: {} }));
    if (isError) throw new Error(content[0].text);
    return content[0].text;
};

const checks = {
    connect: async () => {
        await authorized(connect);
        equal(client.getNegotiatedProtocolVersion(), task.revision);
    },

    denied: async () => {
        await authorized(connect).then(
            () => Promise.reject(new Error('it was accepted')),
            error => holds(error.message, 'access_denied', 'the user said no'),
        );
    },

    whoami: async () => {
        const { subject, client, scopes } = JSON.parse(await call('whoami'));
        holds(scopes, 'mcp:read');
        if (task.subject) equal(subject, task.subject);
        if (['known', 'service', 'signer'].includes(task.client)) equal(client, task.client);
        if (task.client === 'document') equal(client, task.document);
    },

    many: async () => {
        for (let time = 0; time < 10; time++) await call('whoami');
    },

    refreshed: async () => {
        old = login.kept.refresh_token;
        await sleep(task.ttl * 1000 + 1500);
        await call('whoami');
    },

    rotated: () => {
        if (!old || !login.kept.refresh_token || old === login.kept.refresh_token) throw new Error('it is the same token');
    },

    // Uses the old refresh token again; the authorization server then revokes both.
    reused: async () => {
        const form = { grant_type: 'refresh_token', refresh_token: old, client_id: login.information.client_id };
        const answer = await fetch(`${task.issuer}/token`, { method: 'POST', body: new URLSearchParams(form) });
        equal((await answer.json()).error, 'invalid_grant');
    },

    forgotten: async () => equal((await fetch(`${task.issuer}/forget`)).status, 204),

    again: async () => {
        await sleep(task.ttl * 1000 + 1500);
        await call('whoami');
    },

    stepped_up: async () => equal(await call('write'), 'written'),

    close: () => client?.close(),
};

function equal(actual, expected) {
    if (actual !== expected) throw new Error(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
}

function holds(whole, ...parts) {
    if (!parts.some(part => whole.includes(part))) throw new Error(`expected ${parts} in ${JSON.stringify(whole)}`);
}

for (const check of task.checks) {
    let detail = '';
    try {
        await checks[check]();
    } catch (error) {
        detail = `${error.message} ${error.cause ?? ''}`.slice(0, 600);
    }
    console.log(JSON.stringify({ check, ok: detail === '', detail }));
}
process.exit();
