// Both packages forget who waits for progress as soon as they read the answer, but hand progress on a little later. What
// comes in one piece with the answer is then lost, as happens when this process had to wait for its turn. So each message
// is handed on only when all that came before it has been; `look` sees it first.
export function inTurn(wire, look = () => {}) {
    let inner;
    let turn = Promise.resolve();
    const pass = (message, extra) => {
        look(message);
        turn = turn.then(() => inner(message, extra)).catch(error => wire.onerror?.(error)).then(() => new Promise(setImmediate));
    };
    Object.defineProperty(wire, 'onmessage', { get: () => inner && pass, set: handler => (inner = handler) });
    return wire;
}
