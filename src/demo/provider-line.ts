import { connect, createServer, type Socket } from 'node:net';
import type { ListenAddress } from '../platform/net/address.ts';
import { listenOn } from '../platform/net/listen.ts';
import type { Clock } from '../platform/time/clock.ts';

/** The line to the demo's provider, which can be cut and slowed down while both ends keep running. */
interface ProviderLine {
  /** The provider's address; the port stays the same while the line is cut. */
  readonly address: ListenAddress;
  /** Connections lead there from now on. */
  leadTo(provider: ListenAddress): void;
  /** Ends every connection; new ones are refused. */
  cut(): Promise<void>;
  /** @throws {SidecarError} `configuration` if the address has been taken meanwhile. */
  mend(): Promise<void>;
  /** Delays what the provider sends by this much. Milliseconds. */
  delay(delayMs: number): void;
}

/** @throws {SidecarError} `configuration` if the address cannot be listened on. */
export async function openProviderLine(listen: ListenAddress, clock: Clock): Promise<ProviderLine> {
  const sockets = new Set<Socket>();
  let provider: ListenAddress | undefined;
  let delayMs = 0;

  const server = createServer((caller) => {
    if (provider === undefined) {
      caller.destroy();
      return;
    }
    const callee = connect(provider);
    for (const socket of [caller, callee]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    }
    // An error is followed by the end, which is passed on.
    caller.on('error', () => undefined);
    caller.once('close', () => callee.destroy());
    callee.on('error', () => caller.destroy());
    callee.once('close', () => caller.end());
    caller.pipe(callee);
    callee.on('data', (bytes) => {
      callee.pause();
      clock.after(delayMs, () => {
        if (!caller.destroyed) caller.write(bytes);
        callee.resume();
      });
    });
  });
  const address = await listenOn(server, listen, '--issuer-listen');

  return {
    address,
    leadTo(next) {
      provider = next;
    },
    cut: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
    async mend() {
      await listenOn(server, address, '--issuer-listen');
    },
    delay(nextMs) {
      delayMs = nextMs;
    },
  };
}
