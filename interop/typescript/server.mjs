// A test server on the package @modelcontextprotocol/server 2.x, for our client.
//
//   server.mjs dual|modern|legacy stdio|http
//
// `dual` supports both eras, `modern` rejects the handshake, `legacy` supports only the handshake, with sessions on HTTP.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, ResourceTemplate, acceptedContent, completable, createMcpHandler, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const [mode, transport] = process.argv.slice(2);
const GREETING = 'workbench://greeting';
const TONES = ['warm', 'wary', 'plain'];

// State shared by requests: on HTTP each may have its own server.
let givenUp = 0;
let changed = server => server.server.sendResourceUpdated({ uri: GREETING });

const say = text => ({ content: [{ type: 'text', text }] });

function workbench() {
    const server = new McpServer(
        { name: 'workbench', version: '1' },
        { capabilities: { resources: { subscribe: true, listChanged: true }, logging: {} }, instructions: 'Try everything.' },
    );
    withTools(server);
    withQuestions(server);
    server.registerResource('greeting', GREETING, { mimeType: 'text/plain' }, uri => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Hello.' }],
    }));
    const numbers = new ResourceTemplate('workbench://number/{n}', { list: undefined });
    server.registerResource('number', numbers, {}, (uri, { n }) => ({ contents: [{ uri: uri.href, text: String(n) }] }));
    const tone = completable(z.string(), value => TONES.filter(tone => tone.startsWith(value)));
    server.registerPrompt('greet', { argsSchema: z.object({ name: z.string(), tone }) }, ({ name, tone }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name} in a ${tone} tone.` } }],
    }));
    // The older form of subscription; the newer one never reaches such a server.
    server.server.setRequestHandler('resources/subscribe', () => ({}));
    server.server.setRequestHandler('resources/unsubscribe', () => ({}));
    return server;
}

function withTools(server) {
    server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, ({ text }) => say(text));
    server.registerTool(
        'add',
        { inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) },
        ({ a, b }) => ({ ...say(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }),
    );
    server.registerTool('count', { inputSchema: z.object({ to: z.number() }) }, async ({ to }, { mcpReq }) => {
        const { progressToken } = mcpReq._meta ?? {};
        for (let progress = 1; progress <= to && progressToken !== undefined; progress++) {
            await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: to } });
        }
        return say(`counted to ${to}`);
    });
    server.registerTool('wait', { inputSchema: z.object({ seconds: z.number() }) }, async ({ seconds }, { mcpReq }) => {
        await sleep(seconds * 1000, undefined, { signal: mcpReq.signal }).catch(() => givenUp++);
        return say('waited');
    });
    server.registerTool('given_up', {}, () => say(String(givenUp)));
    server.registerTool('touch', {}, async () => {
        await changed(server);
        return say('touched');
    });
    server.registerTool('log', {}, async ({ mcpReq }) => {
        await mcpReq.log('info', 'at work');
        return say('logged');
    });
}

// Input responses of the client in either form; the package turns these into requests for older clients.
function withQuestions(server) {
    const who = z.object({ name: z.string(), formal: z.boolean().default(true) });
    server.registerTool('ask', {}, ({ mcpReq }) => {
        const answer = inputResponse(mcpReq.inputResponses, 'who');
        if (answer.kind === 'missing') {
            const question = inputRequired.elicit({ message: 'Who is there?', requestedSchema: who });
            return inputRequired({ inputRequests: { who: question }, requestState: 'asked' });
        }
        const content = acceptedContent(mcpReq.inputResponses, 'who', who);
        if (content === undefined) return say(`The answer was ${answer.action}.`);
        return say(content.formal ? `Good day, ${content.name}.` : `Hi, ${content.name}.`);
    });
    server.registerTool('visit', {}, ({ mcpReq }) => {
        const answer = inputResponse(mcpReq.inputResponses, 'page');
        if (answer.kind !== 'missing') return say(`The answer was ${answer.action}.`);
        const page = inputRequired.elicitUrl({ message: 'Log in.', url: 'https://example.com/login' });
        return inputRequired({ inputRequests: { page } });
    });
    server.registerTool('summarize', {}, ({ mcpReq }) => {
        const answer = inputResponse(mcpReq.inputResponses, 'model');
        if (answer.kind === 'sampling') return say(answer.result.content.text);
        const messages = [{ role: 'user', content: { type: 'text', text: 'Sum up.' } }];
        return inputRequired({ inputRequests: { model: inputRequired.createMessage({ messages, maxTokens: 10 }) } });
    });
    server.registerTool('places', {}, ({ mcpReq }) => {
        const answer = inputResponse(mcpReq.inputResponses, 'roots');
        if (answer.kind === 'roots') return say(answer.roots.map(root => root.uri).join(' '));
        return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
    });
}

function onStdio() {
    if (mode === 'legacy') return workbench().connect(new StdioServerTransport());
    serveStdio(workbench, { legacy: mode === 'modern' ? 'reject' : 'serve' });
}

function onHttp() {
    listen(mode === 'legacy' ? withSessions() : stateless());
}

function stateless() {
    const handler = createMcpHandler(workbench, { legacy: mode === 'modern' ? 'reject' : 'stateless' });
    changed = () => handler.notify.resourceUpdated(GREETING);
    return toNodeHandler(handler);
}

function withSessions() {
    const sessions = new Map();
    return async (request, response) => {
        const session = sessions.get(request.headers['mcp-session-id']) ?? (await newSession(sessions));
        await session.handleRequest(request, response);
    };
}

async function newSession(sessions) {
    const session = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => void sessions.set(id, session),
        onsessionclosed: id => void sessions.delete(id),
    });
    await workbench().connect(session);
    return session;
}

function listen(handler) {
    const server = createServer(handler);
    server.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${server.address().port}/mcp`));
}

if (transport === 'stdio') await onStdio();
else onHttp();
