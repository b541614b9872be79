// The package @modelcontextprotocol/sdk 1.x, of which an early one speaks 2024-11-05 only.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { observed } from './arrivals.mjs';

const early = types.ElicitRequestSchema === undefined;
const schemas = {
    'elicitation/create': types.ElicitRequestSchema,
    'sampling/createMessage': types.CreateMessageRequestSchema,
    'roots/list': types.ListRootsRequestSchema,
    'notifications/message': types.LoggingMessageNotificationSchema,
    'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
};

export async function connect(transport, target, revision, answers, notices) {
    const elicitation = early ? {} : { elicitation: { form: {}, url: {} } };
    const capabilities = { sampling: {}, roots: { listChanged: true }, ...elicitation };
    const client = new Client({ name: 'interop', version: '1' }, { capabilities });
    for (const [method, answer] of Object.entries(answers)) {
        if (schemas[method]) client.setRequestHandler(schemas[method], answer);
    }
    for (const [method, notice] of Object.entries(notices)) client.setNotificationHandler(schemas[method], notice);
    const wire = await open(transport, target);
    // The early client does not expose the negotiated version, so it is read from the response to its first request.
    await client.connect(observed(wire, message => (negotiated ??= message.result?.protocolVersion)));
    return client;
}

async function open(transport, [first, ...rest]) {
    if (transport === 'stdio') return new StdioClientTransport({ command: first, args: rest });
    if (transport === 'sse') {
        const { SSEClientTransport } = await import('@modelcontextprotocol/sdk/client/sse.js');
        // The early client uses the global, which browsers have.
        if (early) globalThis.EventSource ??= (await import('eventsource')).default;
        return new SSEClientTransport(new URL(first));
    }
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    return new StreamableHTTPClientTransport(new URL(first));
}

// The code of a missing resource, as this client reports it.
export const missing = -32002;

let negotiated;
export const version = () => negotiated;

export const callTool = (client, params, options) => client.callTool(params, undefined, options);

export async function subscribe(client, uri) {
    await client.subscribeResource({ uri });
    return () => client.unsubscribeResource({ uri });
}

export async function close(client) {
    await client.transport.terminateSession?.();
    await client.close();
}
