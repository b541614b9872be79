// A test server on the package @modelcontextprotocol/sdk 1.0, which supports only 2024-11-05, for our client.
//
//   server1.mjs stdio|sse
//
// It lacks helpers, so each method is written out; the tools are listed in two pages.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

const GREETING = 'workbench://greeting';
const TONES = ['warm', 'wary', 'plain'];
const number = { type: 'number' };
let givenUp = 0;

const tool = (name, properties = {}) => ({
    name,
    inputSchema: { type: 'object', properties, required: Object.keys(properties) },
});
const PAGES = {
    first: {
        tools: [tool('echo', { text: { type: 'string' } }), tool('add', { a: number, b: number }), tool('count', { to: number })],
        nextCursor: 'second',
    },
    second: {
        tools: [tool('wait', { seconds: number }), ...['given_up', 'touch', 'log', 'summarize', 'places'].map(name => tool(name))],
    },
};

const tools = server => ({
    echo: ({ text }) => {
        if (typeof text !== 'string') throw new Error('`text` is missing');
        return text;
    },
    add: ({ a, b }) => JSON.stringify({ sum: a + b }),
    count: async ({ to }, { progressToken }) => {
        for (let progress = 1; progress <= to; progress++) {
            await server.notification({ method: 'notifications/progress', params: { progressToken, progress, total: to } });
        }
        return `counted to ${to}`;
    },
    wait: async ({ seconds }, _, signal) => {
        await sleep(seconds * 1000, undefined, { signal }).catch(() => givenUp++);
        return 'waited';
    },
    given_up: () => String(givenUp),
    touch: async () => {
        await server.sendResourceUpdated({ uri: GREETING });
        return 'touched';
    },
    log: async () => {
        await server.sendLoggingMessage({ level: 'info', data: 'at work' });
        return 'logged';
    },
    summarize: async () => {
        const messages = [{ role: 'user', content: { type: 'text', text: 'Sum up.' } }];
        return (await server.createMessage({ messages, maxTokens: 10 })).content.text;
    },
    places: async () => (await server.listRoots()).roots.map(root => root.uri).join(' '),
});

function workbench() {
    const capabilities = { tools: {}, prompts: {}, resources: { subscribe: true }, logging: {} };
    const server = new Server({ name: 'workbench', version: '1' }, { capabilities });
    const known = tools(server);
    const handlers = {
        ListTools: ({ cursor }) => PAGES[cursor ?? 'first'],
        CallTool: async (params, signal) => {
            if (!Object.hasOwn(known, params.name)) throw new types.McpError(-32602, `unknown tool ${params.name}`);
            const text = await known[params.name](params.arguments ?? {}, params._meta ?? {}, signal);
            return { content: [{ type: 'text', text }] };
        },
        ListResources: () => ({ resources: [{ uri: GREETING, name: 'greeting', mimeType: 'text/plain' }] }),
        ListResourceTemplates: () => ({ resourceTemplates: [{ uriTemplate: 'workbench://number/{n}', name: 'number' }] }),
        ReadResource: ({ uri }) => {
            const text = uri === GREETING ? 'Hello.' : uri.match(/^workbench:\/\/number\/(\d+)$/)?.[1];
            if (text === undefined) throw new types.McpError(-32002, 'there is no such resource');
            return { contents: [{ uri, text }] };
        },
        Subscribe: () => ({}),
        Unsubscribe: () => ({}),
        SetLevel: () => ({}),
        ListPrompts: () => ({ prompts: [{ name: 'greet', arguments: [{ name: 'name' }, { name: 'tone' }] }] }),
        GetPrompt: ({ arguments: { name, tone } }) => ({
            messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name} in a ${tone} tone.` } }],
        }),
        Complete: ({ argument }) => ({ completion: { values: TONES.filter(tone => tone.startsWith(argument.value)) } }),
    };
    for (const [name, handle] of Object.entries(handlers)) {
        const schema = types[`${name}RequestSchema`];
        server.setRequestHandler(schema, ({ params }, { signal }) => handle(params ?? {}, signal));
    }
    return server;
}

async function onStdio() {
    await workbench().connect(new StdioServerTransport());
    // This package does not notice that the client has closed the connection.
    process.stdin.on('end', () => process.exit(0));
}

function onSse() {
    const clients = new Map();
    const server = createServer(async (request, response) => {
        const { pathname, searchParams } = new URL(request.url, 'http://127.0.0.1');
        if (request.method === 'GET' && pathname === '/sse') {
            const client = new SSEServerTransport('/message', response);
            clients.set(client.sessionId, client);
            return workbench().connect(client);
        }
        const client = clients.get(searchParams.get('sessionId'));
        if (client === undefined) return response.writeHead(404).end();
        await client.handlePostMessage(request, response);
    });
    server.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${server.address().port}/sse`));
}

if (process.argv[2] === 'stdio') await onStdio();
else onSse();
