// An authorization server on the package oidc-provider, for clients and servers of both sides.
//
//   as.mjs '{"ttl": 2, …}'
//
// Every user is logged in as `ada` without a prompt and consents to everything, or is denied. It prints its listen address, and a JSON
// line for every request with the response, without secrets. SWITCHES has all options.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { randomBytes } from 'node:crypto';
import { exportJWK, exportPKCS8, generateKeyPair } from 'jose';
import { Provider, errors } from 'oidc-provider';

const SWITCHES = {
    // The path of the issuer, as `/tenant`.
    path: '',
    // The locations of its metadata: `oauth` and `oidc` before the path of the issuer, `appended` behind it.
    documents: ['oauth', 'oidc', 'appended'],
    // Lifetime of an access token, in seconds.
    ttl: 300,
    // `jwt`, or `opaque` for tokens that need introspection.
    tokens: 'jwt',
    // The supported scopes.
    scopes: 'mcp:read mcp:write',
    // Refresh tokens are issued `always`, or `asked`: with the scope `offline_access`.
    refresh: 'always',
    // True if clients can register.
    registration: true,
    // The client metadata document at its client_id, if any.
    document: null,
    // True if every DPoP proof needs a nonce.
    nonce: false,
    // True if every login is denied.
    deny: false,
    // The secret of the client `service`.
    secret: 'open-sesame',
    // The file for the private key of the client `signer`.
    key: null,
};

const switches = { ...SWITCHES, ...JSON.parse(process.argv[2] ?? '{}') };
for (const name of Object.keys(switches)) if (!(name in SWITCHES)) throw new Error(`unknown switch ${name}`);

// Any server of this machine may be a resource; the server checks the audience.
const RESOURCE = /^http:\/\/127\.0\.0\.1:\d+(\/\w*)?$/;
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const SECRETS = [
    'code', 'code_verifier', 'device_code', 'refresh_token', 'token', 'client_secret', 'client_assertion', 'assertion',
];

async function clients() {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
    if (switches.key) writeFileSync(switches.key, await exportPKCS8(privateKey), { mode: 0o600 });
    const service = { redirect_uris: [], response_types: [], grant_types: ['client_credentials'] };
    const bySecret = { token_endpoint_auth_method: 'client_secret_basic' };
    return [
        // A native program, with another port each time.
        {
            client_id: 'known',
            application_type: 'native',
            token_endpoint_auth_method: 'none',
            redirect_uris: ['http://127.0.0.1/callback'],
            grant_types: ['authorization_code', 'refresh_token', DEVICE],
        },
        { ...service, ...bySecret, client_id: 'service', client_secret: switches.secret },
        {
            ...service,
            client_id: 'signer',
            token_endpoint_auth_method: 'private_key_jwt',
            token_endpoint_auth_signing_alg: 'ES256',
            jwks: { keys: [{ ...(await exportJWK(publicKey)), alg: 'ES256', use: 'sig' }] },
        },
        // The client that servers use for introspection.
        { ...service, ...bySecret, client_id: 'server', client_secret: 'of the server', grant_types: [] },
    ];
}

async function provider(issuer) {
    const { ttl, scopes } = switches;
    return new Provider(issuer, {
        clients: await clients(),
        scopes: ['openid', 'offline_access', ...scopes.split(' ')],
        pkce: { required: () => true },
        ttl: {
            AccessToken: ttl, ClientCredentials: ttl, AuthorizationCode: 60, RefreshToken: 3600, IdToken: 300,
            Interaction: 60, Session: 600, Grant: 3600,
        },
        clientDefaults: { token_endpoint_auth_method: 'none', grant_types: ['authorization_code'] },
        rotateRefreshToken: true,
        issueRefreshToken: async (_, client, { scopes }) =>
            client.grantTypeAllowed('refresh_token') && (switches.refresh === 'always' || scopes.has('offline_access')),
        findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
        interactions: { url: (_, { uid }) => `${switches.path}/login/${uid}` },
        // Consent is granted in advance.
        loadExistingGrant: ({ oidc }) => consent(oidc.provider, oidc.client.clientId, oidc.params.resource),
        fetch: (url, options) => {
            if (url === switches.document?.client_id) return Response.json(switches.document);
            return fetch(url, options);
        },
        features: {
            devInteractions: { enabled: false },
            registration: { enabled: switches.registration },
            clientCredentials: { enabled: true },
            introspection: { enabled: true },
            revocation: { enabled: true },
            deviceFlow: { enabled: true },
            clientIdMetadataDocument: { enabled: switches.document !== null, ack: 'draft-02' },
            dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => switches.nonce },
            resourceIndicators: {
                enabled: true,
                defaultResource: () => undefined,
                useGrantedResource: () => true,
                getResourceServerInfo: (_, resource) => {
                    if (!RESOURCE.test(resource)) throw new errors.InvalidTarget('there is no such server');
                    const format = { accessTokenFormat: switches.tokens, jwt: { sign: { alg: 'RS256' } } };
                    return { ...format, scope: scopes, audience: resource, accessTokenTTL: ttl };
                },
            },
        },
    });
}

async function consent(provider, clientId, resource) {
    const grant = new provider.Grant({ accountId: 'ada', clientId });
    grant.addOIDCScope(`openid offline_access ${switches.scopes}`);
    if (resource) grant.addResourceScope(resource, switches.scopes);
    await grant.save();
    return grant;
}

// The user, with the same decision every time.
async function logIn(provider, request, response) {
    const details = await provider.interactionDetails(request, response);
    const answer = switches.deny
        ? { error: 'access_denied', error_description: 'the user said no' }
        : { [details.prompt.name]: details.prompt.name === 'login' ? { accountId: 'ada' } : {} };
    await provider.interactionFinished(request, response, answer, { mergeWithLastSubmission: true });
}

// The user on another device. The pages for entering the code are skipped.
async function typeCode(provider, userCode) {
    const code = await provider.DeviceCode.findByUserCode(userCode.replace('-', ''));
    const { scope, resource } = code.params;
    const { jti } = await consent(provider, code.clientId, resource);
    Object.assign(code, switches.deny ? { error: 'access_denied' } : { accountId: 'ada', scope, resource, grantId: jti });
    await code.save();
}

// Deletes all dynamically registered clients, as a cleanup would.
async function forget(provider) {
    for (const client of registered.splice(0)) await provider.Client.adapter.destroy(client);
}

const registered = [];

// An issuer with a path has three metadata URLs; the package serves the last.
function documentAt(url) {
    const { path } = switches;
    const places = {
        oauth: [`/.well-known/oauth-authorization-server${path}`, '/.well-known/oauth-authorization-server'],
        oidc: [`/.well-known/openid-configuration${path}`, '/.well-known/openid-configuration'],
        appended: [`${path}/.well-known/openid-configuration`, '/.well-known/openid-configuration'],
    };
    for (const form of switches.documents) if (places[form][0] === url) return places[form][1];
}

function serve(provider) {
    const handle = provider.callback();
    return async (request, response) => {
        const [url] = request.url.split('?');
        const nowhere = () => {
            report({ method: request.method, path: url, said: {}, status: 404 });
            response.writeHead(404).end();
        };
        const document = documentAt(url);
        if (document === undefined && (url.includes('/.well-known/') || !url.startsWith(switches.path))) return nowhere();
        request.asked = url;
        request.originalUrl = document ? `${switches.path}${document}` : request.url;
        request.url = document ?? (request.url.slice(switches.path.length) || '/');
        if (request.url.startsWith('/login/')) return logIn(provider, request, response);
        if (request.url === '/forget') return response.writeHead(204).end(await forget(provider));
        if (request.url.startsWith('/device?')) {
            await typeCode(provider, new URLSearchParams(request.url.slice('/device?'.length)).get('user_code'));
            return response.writeHead(204).end();
        }
        handle(request, response);
    };
}

function watch(provider) {
    provider.use(async (context, next) => {
        await next();
        const { method, req, status, oidc, headers } = context;
        const redirected = URL.parse(context.response.get('location'), 'http://127.0.0.1')?.searchParams;
        const said = Object.entries(oidc?.params ?? oidc?.body ?? {}).filter(([, value]) => value !== undefined);
        report({
            method,
            path: req.asked,
            route: oidc?.route,
            said: Object.fromEntries(said.map(([name, value]) => [name, SECRETS.includes(name) ? '***' : value])),
            client: oidc?.client?.clientId,
            proof: headers.dpop !== undefined,
            status,
            error: context.body?.error ?? redirected?.get('error') ?? undefined,
        });
    });
    provider.on('registration_create.success', (_, client) => registered.push(client.clientId));
    provider.on('server_error', (_, error) => console.error(error));
}

const report = line => console.log(JSON.stringify(line));

const server = createServer();
server.listen(0, '127.0.0.1', async () => {
    const issuer = `http://127.0.0.1:${server.address().port}${switches.path}`;
    const ours = await provider(issuer);
    watch(ours);
    server.on('request', serve(ours));
    console.error(`listening on ${issuer}`);
});
