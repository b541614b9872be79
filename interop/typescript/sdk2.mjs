// The package @modelcontextprotocol/client 2.x: one client for both eras.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { observed } from './arrivals.mjs';

const modern = revision => revision >= '2026-07-28';

export async function connect(transport, [first, ...rest], revision, answers, notices) {
    const client = new Client(
        { name: 'interop', version: '1' },
        {
            capabilities: { sampling: {}, roots: { listChanged: true }, elicitation: { form: {}, url: {} } },
            versionNegotiation: { mode: modern(revision) ? 'auto' : 'legacy' },
        },
    );
    for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(method, answer);
    for (const [method, notice] of Object.entries(notices)) client.setNotificationHandler(method, notice);
    const stdio = transport === 'stdio';
    const wire = stdio ? new StdioClientTransport({ command: first, args: rest }) : new StreamableHTTPClientTransport(new URL(first));
    await client.connect(observed(wire));
    return client;
}

// The older code for a missing resource is reported as the newer one.
export const missing = -32602;

export const version = client => client.getNegotiatedProtocolVersion();

export const callTool = (client, params, options) => client.callTool(params, options);

export async function subscribe(client, uri) {
    if (client.getProtocolEra() === 'modern') {
        const subscription = await client.listen({ resourceSubscriptions: [uri] });
        return () => subscription.close();
    }
    await client.subscribeResource({ uri });
    return () => client.unsubscribeResource({ uri });
}

export async function close(client) {
    if (client.getProtocolEra() !== 'modern') await client.transport.terminateSession?.();
    await client.close();
}
