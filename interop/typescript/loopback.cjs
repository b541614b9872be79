// Loaded before a server that would listen on every address and on a port of its choice: it listens on a free port of
// this machine, or on LOOPBACK_PORT, and says which.
const { Server } = require('node:net');

const { listen } = Server.prototype;
Server.prototype.listen = function (_, ...rest) {
    this.once('listening', () => console.error(`listening on http://127.0.0.1:${this.address().port}`));
    return listen.call(this, { host: '127.0.0.1', port: Number(process.env.LOOPBACK_PORT ?? 0) }, ...rest.filter(part => typeof part === 'function'));
};
