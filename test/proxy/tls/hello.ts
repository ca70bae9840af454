import { Duplex } from 'node:stream';
import { type ConnectionOptions, connect } from 'node:tls';

/** What OpenSSL says first. */
export function helloOf(options: ConnectionOptions): Promise<Buffer> {
  return new Promise((resolve) => {
    const wire = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, callback) {
        resolve(chunk);
        callback();
        setImmediate(() => tls.destroy());
      },
    });
    const tls = connect({ socket: wire, ...options });
    tls.on('error', () => {});
  });
}
