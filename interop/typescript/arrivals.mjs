// Records the messages of a TypeScript client as they arrive. Each is forwarded at once: nothing is delayed or reordered.
//
// Both packages have a defect: when they read the response to a request they drop its progress handler, and they deliver
// progress only a little later. So progress that arrives in one chunk with the response is read, and never reported. The
// operating system decides which messages arrive in one chunk, so a check cannot require that the client reports all of it.
// `progressOf` requires that the server sent it, and that only progress which arrived together with the response is missing.
const arrived = [];
let turn = 0;

// Records each message of a transport with the event-loop turn in which it arrived.
export function observed(wire, look = () => {}) {
    let inner;
    const pass = (message, extra) => {
        look(message);
        arrived.push({ message, turn });
        setImmediate(() => (turn += 1));
        return inner(message, extra);
    };
    Object.defineProperty(wire, 'onmessage', { get: () => inner && pass, set: handler => (inner = handler) });
    return wire;
}

// Makes a call; returns its result and the steps that the server sent. Fails if the client reported anything else than
// these, without those that it lost by the defect above.
export async function progressOf(call) {
    arrived.length = 0;
    const reported = [];
    const result = await call(({ progress, total }) => reported.push([progress, total]));
    const answer = arrived.findIndex(({ message }) => message.result?.content !== undefined);
    const steps = arrived.slice(0, answer).filter(({ message }) => message.method === 'notifications/progress');
    const told = ({ message: { params } }) => [params.progress, params.total];
    const isReported = step => reported.some(other => `${other}` === `${told(step)}`);
    const lost = steps.filter(step => step.turn === arrived[answer].turn && !isReported(step));
    const expected = steps.filter(step => !lost.includes(step)).map(told);
    if (`${reported}` !== `${expected}`) {
        throw new Error(`the client reported ${JSON.stringify(reported)} of ${JSON.stringify(steps.map(told))}`);
    }
    if (lost.length > 0) console.error(`this client lost progress that came with the answer: ${JSON.stringify(lost.map(told))}`);
    return { result, steps: steps.map(told) };
}
