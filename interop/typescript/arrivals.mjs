// Looks at the messages of a TypeScript client as they arrive. Each is handed on at once: nothing is delayed or reordered.
//
// Both packages have a defect: when they read the answer to a request they forget who waits for its progress, and they hand
// progress on only a little later. So progress that arrives in one piece with the answer is read, and never reported. Which
// messages come in one piece is up to the operating system, so a check cannot demand that the client reports all of it.
// `progressOf` demands that the server sent it, and that only progress which came together with the answer is missing.
const arrived = [];
let turn = 0;

// Notes each message of a transport with the turn of the event loop in which it arrived.
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
