// Drives a server with a TypeScript client and prints a JSON line per check.
//
//   driver.mjs SDK CLIENT REVISION CHECK,… stdio COMMAND… | http URL | sse URL
//
// SDK names the module in this folder that adapts one package. The expected behavior of the server is
// defined here, once.
import { randomUUID } from 'node:crypto';
import { deepStrictEqual } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';

import { progressOf } from './arrivals.mjs';

const TOOLS = ['add', 'card', 'connect', 'count_words', 'find', 'places', 'remind', 'sign', 'summarize', 'tidy'];
const RESOURCES = ['notes://about', 'notes://all', 'notes://pixel'];
const ABOUT = 'Notes, kept in memory.';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

const [sdkName, name, revision, wanted, transport, ...target] = process.argv.slice(2);
const sdk = await import(`./${sdkName}.mjs`);
const modern = revision >= '2026-07-28';
const mark = randomUUID();

// The client's handlers of server requests, and the notifications that it received.
const questions = [];
let declines = false;
const logged = [];
const updated = [];
const answers = {
    'elicitation/create': ({ params }) => {
        questions.push(params);
        if (declines) return { action: 'decline' };
        return params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { name: 'Ada', dated: true } };
    },
    'sampling/createMessage': ({ params }) => {
        questions.push(params);
        return { role: 'assistant', model: 'none', content: { type: 'text', text: 'all is well' } };
    },
    'roots/list': () => ({ roots: [{ uri: 'file:///srv/interop', name: 'here' }] }),
};
const notices = {
    'notifications/message': ({ params }) => void logged.push(params),
    'notifications/resources/updated': ({ params }) => void updated.push(params.uri),
};

const checks = client => ({
    version: () => equal(sdk.version(client), revision),

    server_info: () => equal(client.getServerVersion().name, 'notes'),

    tools: async () => {
        const tools = await pages(client.listTools.bind(client), 'tools');
        equal(tools.map(tool => tool.name).sort(), TOOLS);
        for (const tool of tools) equal(tool.inputSchema.type, 'object');
    },

    resources: async () => {
        const resources = await pages(client.listResources.bind(client), 'resources');
        equal(resources.map(resource => resource.uri).sort(), RESOURCES);
    },

    templates: async () => {
        const templates = await pages(client.listResourceTemplates.bind(client), 'resourceTemplates');
        equal(templates.map(template => template.uriTemplate), ['notes://note/{number}']);
    },

    prompts: async () => {
        const prompts = await pages(client.listPrompts.bind(client), 'prompts');
        equal(prompts.map(prompt => prompt.name), ['review']);
    },

    text: async () => equal(text(await call('tidy')), 'All is in order.'),

    content: async () => {
        const { content } = await call('card');
        equal(content.map(block => block.type), ['text', 'image', 'resource']);
        equal(content[1].mimeType, 'image/png');
        equal(content[2].resource.text, ABOUT);
    },

    structured: async () => {
        const result = await call('add', { text: `structured ${mark}` });
        const told = JSON.parse(text(result));
        if (revision >= '2025-06-18') equal(result.structuredContent, told);
        equal(told.uri, `notes://note/${told.count}`);
    },

    // A result that is an array, which revisions before the newest cannot hold as structured content.
    list_result: async () => {
        const found = JSON.stringify(await call('find', { text: `structured ${mark}` }));
        holds(found, `structured ${mark}`);
    },

    missing_argument: async () => {
        const result = await call('add');
        equal(result.isError, true);
        holds(text(result), 'text');
    },

    invalid_arguments: async () => {
        const result = await call('add', { text: 7 });
        equal(result.isError, true);
        holds(text(result), 'text');
    },

    tool_error: async () => {
        const result = await call('add', { text: ' ' });
        equal(result.isError, true);
        holds(text(result), 'must not be empty');
    },

    unknown_tool: () => fails(call('no_such_tool'), -32602),

    progress: async () => {
        const { steps } = await progressOf(onprogress => call('tidy', {}, { onprogress }));
        equal(steps, [[1, 3], [2, 3], [3, 3]]);
    },

    logging: async () => {
        logged.length = 0;
        if (modern) {
            await sdk.callTool(client, { name: 'tidy', arguments: {}, _meta: { [LOG_LEVEL]: 'info' } });
        } else {
            await client.setLoggingLevel('info');
            await call('tidy');
        }
        const { level, data } = await first(logged);
        equal([level, data], ['info', 'tidying up']);
    },

    read_text: async () => {
        const { contents } = await client.readResource({ uri: 'notes://about' });
        equal(contents.map(part => [part.uri, part.text]), [['notes://about', ABOUT]]);
    },

    read_bytes: async () => {
        const { contents } = await client.readResource({ uri: 'notes://pixel' });
        equal(contents[0].mimeType, 'image/png');
        equal(Buffer.from(contents[0].blob, 'base64').toString('latin1', 1, 4), 'PNG');
    },

    read_template: async () => {
        const { uri } = JSON.parse(text(await call('add', { text: `template ${mark}` })));
        const { contents } = await client.readResource({ uri });
        equal(contents[0].text, `template ${mark}`);
    },

    missing_resource: async () => {
        const missing = modern ? -32602 : sdk.missing;
        await fails(client.readResource({ uri: 'notes://nowhere' }), missing);
        await fails(client.readResource({ uri: 'notes://note/999999' }), missing);
    },

    prompt: async () => {
        const { messages } = await client.getPrompt({ name: 'review', arguments: { tone: 'frank' } });
        equal(messages.map(message => message.content.type), ['resource', 'text']);
        equal(messages[1].content.text, 'Go through these notes in a frank tone.');
    },

    unknown_prompt: () => fails(client.getPrompt({ name: 'no_such_prompt', arguments: {} }), -32602),

    completion: async () => {
        const prompt = { ref: { type: 'ref/prompt', name: 'review' }, argument: { name: 'tone', value: 'fr' } };
        equal((await client.complete(prompt)).completion.values.toSorted(), ['frank', 'friendly']);
        const ref = { type: 'ref/resource', uri: 'notes://note/{number}' };
        const { completion } = await client.complete({ ref, argument: { name: 'number', value: '1' } });
        holds(completion.values, '1');
    },

    elicitation: async () => {
        equal(text(await call('sign')), 'Signed by Ada.');
        equal(questions.at(-1).message, 'Who signs this note?');
        holds(Object.keys(questions.at(-1).requestedSchema.properties), 'name');
    },

    declined: async () => {
        declines = true;
        const answer = text(await call('sign').finally(() => (declines = false)));
        equal(answer, 'The user did not want to sign.');
    },

    url_elicitation: async () => {
        equal(text(await call('connect')), 'The user went to the page.');
        equal(questions.at(-1).url, 'https://example.com/login');
    },

    sampling: async () => holds(text(await call('summarize')), 'all is well'),

    roots: async () => equal(text(await call('places')), 'file:///srv/interop'),

    // A client request that this client does not support ends the call, and nothing is sent to it.
    undeclared: async () => equal((await call('sign')).isError, true),

    // The tool would leave a note after the time; it must not, once its call is cancelled.
    cancellation: async () => {
        const note = `cancelled ${mark}`;
        const cancel = new AbortController();
        const cancelled = call('remind', { text: note, seconds: 1.5 }, { signal: cancel.signal }).then(
            () => Promise.reject(new Error('the call went on')),
            () => {},
        );
        await sleep(200);
        cancel.abort('tried');
        await cancelled;
        await sleep(1600);
        const found = JSON.stringify(await call('find', { text: note }));
        if (found.includes(note)) throw new Error(`the tool went on: ${found}`);
    },

    timeout: async () => {
        const started = Date.now();
        await call('remind', { text: 'late', seconds: 1.5 }, { timeout: 200 }).then(
            () => Promise.reject(new Error('the call was not given up')),
            () => {},
        );
        if (Date.now() - started > 1400) throw new Error('the call was given up late');
        await sleep(1500);
        equal(text(await call('tidy')), 'All is in order.');
    },

    subscription: async () => {
        updated.length = 0;
        const end = await sdk.subscribe(client, 'notes://all');
        await call('add', { text: `update ${mark}` });
        equal(await first(updated), 'notes://all');
        await end();
    },

    // A slow call does not delay others on the same connection.
    together: async () => {
        let done = false;
        const slow = call('remind', { text: `slow ${mark}`, seconds: 1 }).then(() => (done = true));
        await sleep(50);
        const quick = await Promise.all(Array.from({ length: 8 }, () => call('tidy')));
        equal(done, false);
        equal([...new Set(quick.map(text))], ['All is in order.']);
        await slow;
    },

    ping: () => client.ping(),
});

let client;

function call(tool, args = {}, options = undefined) {
    return sdk.callTool(client, { name: tool, arguments: args }, options);
}

async function pages(list, member) {
    const found = [];
    let cursor;
    do {
        const page = await list(cursor === undefined ? undefined : { cursor });
        found.push(...page[member]);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
}

const text = result => result.content[0].text;

function equal(actual, expected) {
    try {
        deepStrictEqual(actual, expected);
    } catch {
        throw new Error(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
    }
}

function holds(whole, part) {
    if (!whole.includes(part)) throw new Error(`expected ${JSON.stringify(part)} in ${JSON.stringify(whole)}`);
}

async function fails(promise, code) {
    const result = await promise.catch(error => {
        if (error.code !== code) throw new Error(`expected error ${code}, got ${error.code} ${error.message}`);
        return undefined;
    });
    if (result !== undefined) throw new Error(`expected error ${code}, got ${JSON.stringify(result)}`);
}

async function first(list) {
    for (let tries = 0; tries < 100 && list.length === 0; tries++) await sleep(50);
    if (list.length === 0) throw new Error('nothing came within 5 s');
    return list[0];
}

async function within(seconds, promise) {
    const stop = new AbortController();
    const late = sleep(seconds * 1000, undefined, { signal: stop.signal }).then(() => {
        throw new Error(`no end within ${seconds} s`);
    });
    late.catch(() => {});
    return Promise.race([promise, late]).finally(() => stop.abort());
}

function report(check, ok, detail = '') {
    console.log(JSON.stringify({ client: name, transport, check, ok, detail: detail.slice(0, 600) }));
}

async function attempt(check, action) {
    try {
        await within(10, Promise.resolve().then(action));
        report(check, true);
        return true;
    } catch (error) {
        report(check, false, `${error.name}: ${error.message}`);
        return false;
    }
}

const connected = await attempt('connect', async () => {
    client = await sdk.connect(transport, target, revision, answers, notices);
});
if (!connected) process.exit(1);
const known = checks(client);
for (const check of wanted.split(',')) await attempt(check, () => known[check]());
await attempt('close', async () => {
    const started = Date.now();
    await sdk.close(client);
    if (Date.now() - started > 1900) throw new Error(`closing took ${Date.now() - started} ms`);
});
process.exit();
