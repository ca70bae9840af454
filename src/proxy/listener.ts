import { createServer, type Server, type Socket } from 'node:net';
import type { ListenAddress } from '../config/config.ts';
import { listenOn } from '../listen.ts';
import { AppConnection } from './app-connection.ts';
import type { ProxyContext } from './context.ts';

/** The listening side of the proxy: its connections, and their end. */
export class Listener {
  readonly #context: ProxyContext;
  readonly #server: Server;
  readonly #connections = new Set<AppConnection>();
  readonly #unusedWaiters = new Set<() => void>();
  #drained: Promise<void> | undefined;

  constructor(context: ProxyContext) {
    this.#context = context;
    // The end of what a client has to say is acted upon, and not answered by Node with the end of the connection.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (accepted) =>
      this.#accept(accepted),
    );
  }

  /** @throws {SidecarError} `configuration` when the address cannot be listened on. */
  async listen(listen: ListenAddress): Promise<ListenAddress> {
    const address = await listenOn(this.#server, listen, '--listen');
    this.#server.on('error', (error) => this.#context.log.error({ err: error }, 'listener error'));
    return address;
  }

  /** See `DataPath.drain`. */
  async drain(timeoutMs: number): Promise<void> {
    this.#drained ??= this.#drain();
    // Every call has its bound: a second, shorter one is in more of a hurry.
    const cancel = this.#context.clock.after(timeoutMs, () => {
      for (const { socket } of this.#connections) socket.destroy();
    });
    await this.#drained;
    cancel();
  }

  /** See `DataPath.whenUnused`. */
  whenUnused(boundMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        this.#unusedWaiters.delete(done);
        resolve();
      };
      const cancel = this.#context.clock.after(boundMs, done);
      this.#callWhenUnused(done);
    });
  }

  async #drain(): Promise<void> {
    this.#context.load.draining = true;
    const unlistened = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    const unused = new Promise<void>((resolve) => this.#callWhenUnused(resolve));
    this.#closeIfIdle();
    await Promise.all([unlistened, unused]);
  }

  #callWhenUnused(done: () => void): void {
    if (this.#connections.size === 0) done();
    else this.#unusedWaiters.add(done);
  }

  /** While others are being served, idle connections stay: a request on its way is told of the draining. */
  #closeIfIdle(): void {
    if (!this.#context.load.draining) return;
    for (const { busy } of this.#connections) if (busy) return;
    for (const connection of this.#connections) connection.closeIdle();
  }

  #accept(accepted: Socket): void {
    const connection = new AppConnection(accepted, this.#context, () => this.#closeIfIdle());
    this.#connections.add(connection);
    connection.socket.on('close', () => {
      this.#connections.delete(connection);
      this.#closeIfIdle();
      if (this.#connections.size > 0) return;
      for (const done of this.#unusedWaiters) done();
      this.#unusedWaiters.clear();
    });
  }
}
