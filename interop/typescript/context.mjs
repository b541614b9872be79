// Drives `turnbuckle serve` with a TypeScript client and prints a JSON line per check.
//
//   context.mjs SDK CLIENT REVISION CHECK,… stdio COMMAND… | http URL
import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

import { progressOf } from './arrivals.mjs';

const FAMILIES = /^(checkpoint|memory|remediation|skill|collection|debug|index|repository)_|^status$/;

const [sdkName, name, revision, wanted, transport, ...target] = process.argv.slice(2);
const sdk = await import(`./${sdkName}.mjs`);

const project = resolve('project');
mkdirSync(`${project}/.git`, { recursive: true });
writeFileSync(`${project}/.git/HEAD`, 'ref: refs/heads/main\n');
writeFileSync(`${project}/parser.js`, 'export function parseConfig(text) {\n    return {};\n}\n');
writeFileSync(`${project}/server.js`, 'export function acceptLoop() {\n}\n');

let client, saved, debugged;

// In the order of a typical session.
const checks = {
    tools: async () => {
        for (const tool of (await client.listTools()).tools) {
            holds(FAMILIES.test(tool.name), tool.name);
            holds(tool.description && tool.annotations && tool.outputSchema.type === 'object', tool);
        }
    },

    checkpoint: async () => {
        saved = await call('checkpoint_save', {
            content: 'The parser reads tables; next: error positions.',
            project_path: project,
            metadata: { summary: 'Parser done' },
        });
    },

    search: async () => {
        const found = await call('checkpoint_search', { query: 'how far is the parser?', project_path: project });
        holds(found.checkpoints[0].checkpoint.id === saved.checkpoint_id, found);
    },

    list: async () => {
        const listed = await call('checkpoint_list', { project_path: project });
        holds(listed.checkpoints.length === 1 && listed.checkpoints[0].summary === 'Parser done', listed);
    },

    index: async () => {
        const index = onprogress => call('index_repository', { path: project }, { onprogress });
        const { result, steps } = await progressOf(index);
        holds(result.files_indexed === 2, result);
        holds(steps.length > 0, 'no progress was told');
    },

    repository_search: async () => {
        const found = await call('repository_search', { query: 'where is the config parsed?', project_path: project });
        holds(JSON.stringify(found).includes('parser.js'), found);
    },

    status: async () => {
        holds((await call('status', {})).status === 'healthy', 'not healthy');
        holds((await call('status', { operation_id: saved.operation_id })).status === 'completed', 'not completed');
    },

    skill: async () => {
        await call('skill_save', { name: 'release', description: 'How a release is made', content: '1. Tag it.' });
        const found = await call('skill_search', { query: 'make a release' });
        holds(found.skills[0].skill.name === 'release', found);
    },

    remediation: async () => {
        const error = "TypeError: Cannot read properties of undefined (reading 'name') at parser.js:4";
        await call('remediation_save', { error_msg: error, solution: 'Use ?. there.', project_path: project });
        const found = await call('remediation_search', { error_msg: error, project_path: project });
        holds(found.remediations.length === 1, found);
    },

    collection: async () => {
        const { collections } = await call('collection_list', {});
        const topic = collections[0].name.replace('/main', '/topic');
        await call('collection_create', { collection_name: topic, vector_size: 384 });
        holds((await call('collection_delete', { collection_name: topic })).deleted === true, 'not deleted');
    },

    resources: async () => {
        const uri = `checkpoint://${saved.checkpoint_id}`;
        const { resources } = await client.listResources();
        holds(resources.some(resource => resource.uri === uri), resources);
        const { contents } = await client.readResource({ uri });
        holds(contents[0].text.includes('error positions'), contents);
        holds((await client.listResourceTemplates()).resourceTemplates.length >= 3, 'few templates');
    },

    prompts: async () => {
        const { prompts } = await client.listPrompts();
        holds(prompts.map(prompt => prompt.name).sort().join() === 'explain_repository,record_fix,resume_work', prompts);
        const messages = await client.getPrompt({ name: 'resume_work', arguments: { project_path: project } });
        holds(JSON.stringify(messages).includes('Parser done'), messages);
    },

    debug: async () => {
        const found = await call('debug_log_query', { function_pattern: 'checkpoint_*', entry_type: 'exit' });
        holds(found.entries[0].function_name === 'checkpoint_save', found);
        holds(found.entries.every(entry => entry.duration_ms > 0), found);
    },

    debug_create: async () => {
        debugged = await call('debug_create_session', { program: 'build', target_type: 'native' });
        holds(debugged.state === 'recording' && debugged.target_type === 'native', debugged);
    },

    debug_list: async () => holds((await openSessions()).includes(debugged.session_id), 'the session is not listed'),

    debug_enable: async () => {
        const enabled = await call('debug_log_enable', { pattern: 'checkpoint_*' });
        holds(enabled.status === 'enabled' && enabled.filter_pattern === 'checkpoint_*', enabled);
    },

    debug_status: async () => {
        const status = await call('debug_log_status', {});
        holds(status.enabled === true && status.filter_pattern === 'checkpoint_*', status);
        holds(status.current_depth === 1 && status.entry_count > 0, status);
    },

    debug_missing: async () => {
        const result = await sdk.callTool(client, { name: 'debug_create_session', arguments: {} });
        holds(result.isError === true && result.content[0].text.includes('program'), result);
    },

    debug_close: async () => {
        const closed = await call('debug_close_session', { session_id: debugged.session_id });
        holds(closed.status === 'ok' && closed.closed === debugged.session_id, closed);
        holds(!(await openSessions()).includes(debugged.session_id), 'the session is still listed');
    },
};

async function openSessions() {
    return (await call('debug_list_sessions', {})).sessions.map(session => session.session_id);
}

async function call(tool, args, options) {
    const result = await sdk.callTool(client, { name: tool, arguments: args }, options);
    holds(!result.isError && result.content[0].text.trim() !== '', result);
    return result.structuredContent;
}

function holds(claim, seen) {
    if (!claim) throw new Error(`unexpected: ${JSON.stringify(seen)}`);
}

async function attempt(check, action) {
    try {
        await action();
        console.log(JSON.stringify({ client: name, check, ok: true, detail: '' }));
    } catch (error) {
        console.log(JSON.stringify({ client: name, check, ok: false, detail: `${error.message}`.slice(0, 600) }));
    }
}

await attempt('connect', async () => {
    client = await sdk.connect(transport, target, revision, {}, {});
    holds(sdk.version(client) === revision, sdk.version(client));
});
for (const check of wanted.split(',')) await attempt(check, checks[check]);
await attempt('close', () => sdk.close(client));
process.exit();
