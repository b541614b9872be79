// The measured server on the package @modelcontextprotocol/server 2.x, as its documentation shows it.
//
//   server.mjs --listen ADDRESS | --stdio [--tools N] [--more]
//
// On HTTP the package has one handler per era, so requests of the newest revision go to its stateless handler, and all
// others to the transport of their session.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const { values: options } = parseArgs({
    options: {
        listen: { type: 'string' },
        stdio: { type: 'boolean' },
        tools: { type: 'string', default: '2' },
        more: { type: 'boolean' },
    },
});
const extra = Array.from({ length: Math.max(0, Number(options.tools) - 2) }, (_, number) => String(number).padStart(3, '0'));

const echo = {
    description: 'Says the message back',
    inputSchema: z.object({ message: z.string().describe('What to say back.') }),
};
const add = {
    description: 'Adds two numbers',
    inputSchema: z.object({ a: z.number().describe('The first number.'), b: z.number().describe('The second number.') }),
    outputSchema: z.object({ sum: z.number().describe('Both numbers together.') }),
};
const order = z.object({
    query: z.string().describe('What is to be looked for.'),
    limit: z.number().int().describe('How many results are wanted at most.'),
    place: z.string().describe('Where to look, as a path from the top.'),
});
const steps = { description: 'Reports three steps, then is done' };
const announce = { description: 'Tells everyone who listens that the tools changed' };

const say = text => ({ content: [{ type: 'text', text }] });

// The servers that `announce` notifies; on HTTP more than the one that received the call.
let tell = server => server.sendToolListChanged();

function measured() {
    const server = new McpServer({ name: 'echo', version: '0.1.0' });
    server.registerTool('echo', echo, ({ message }) => say(message));
    server.registerTool('add', add, ({ a, b }) => ({ ...say(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }));
    for (const number of extra) {
        const description = `Looks for something at place ${number}, and says what it found`;
        server.registerTool(`tool-${number}`, { description, inputSchema: order }, () => say('found nothing'));
    }
    if (options.more) withMore(server);
    return server;
}

function withMore(server) {
    server.registerTool('steps', steps, async ({ mcpReq }) => {
        const { progressToken } = mcpReq._meta ?? {};
        for (let progress = 1; progress <= 3 && progressToken !== undefined; progress++) {
            await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
        }
        return say('done');
    });
    server.registerTool('announce', announce, async () => {
        await tell(server);
        return say('told');
    });
}

function onHttp(host, port) {
    const modern = createMcpHandler(measured);
    const answerModern = toNodeHandler(modern);
    const sessions = new Map();
    tell = () => {
        modern.notify.toolsChanged();
        return Promise.all([...sessions.values()].map(({ server }) => server.sendToolListChanged()));
    };
    const listener = createServer(async (request, response) => {
        if (request.headers['mcp-protocol-version'] === '2026-07-28') return answerModern(request, response);
        const session = sessions.get(request.headers['mcp-session-id']) ?? (await newSession(sessions));
        await session.transport.handleRequest(request, response);
    });
    listener.listen(port, host, () => console.error(`listening on http://${host}:${listener.address().port}/mcp`));
}

async function newSession(sessions) {
    const server = measured();
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => void sessions.set(id, { server, transport }),
        onsessionclosed: id => void sessions.delete(id),
    });
    await server.connect(transport);
    return { server, transport };
}

if (options.stdio) {
    serveStdio(measured);
} else {
    const [host, port] = options.listen.split(':');
    onHttp(host, Number(port));
}
