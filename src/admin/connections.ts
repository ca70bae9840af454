/** The admin listener's connections: a bounded number, of which idle ones give way to new ones. */

import type { Socket } from 'node:net';

/** The kubelet, a few Prometheus replicas and some people need a dozen. */
export const MAX_CONNECTIONS = 128;

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** Whether one of its requests is being answered. */
  busy: boolean;
}

export class AdminConnections {
  /**
   * In order of becoming idle: the longest idle comes first. So few can be searched; a `Map` would keep closed ones
   * until a full collection (docs/decisions/0027).
   */
  readonly #open: Connection[] = [];

  readonly #dropped: () => void;

  /** @param dropped is called for each that gave way. */
  constructor(dropped: () => void) {
    this.#dropped = dropped;
  }

  get size(): number {
    return this.#open.length;
  }

  add(socket: Socket): void {
    this.#open.push({ socket, address: socket.remoteAddress ?? '', busy: false });
    socket.once('close', () => this.#remove(socket));
    if (this.#open.length > MAX_CONNECTIONS) this.#shedFor(socket);
  }

  /** False if another request of the connection is still being answered: no legitimate caller pipelines. */
  begin(socket: Socket): boolean {
    const connection = this.#open.find((each) => each.socket === socket);
    if (connection === undefined || connection.busy) return false;
    connection.busy = true;
    return true;
  }

  end(socket: Socket): void {
    const connection = this.#remove(socket);
    if (connection === undefined) return;
    connection.busy = false;
    this.#open.push(connection);
  }

  /**
   * At the address with the most connections, the one idle longest; if all of them are busy, any other idle one, or
   * else the newest of that address. So no crowd from one address keeps out another.
   */
  #shedFor(newcomer: Socket): void {
    const crowd = this.#mostFrequentAddress();
    let idle: Socket | undefined;
    let newest: Socket | undefined;
    for (const { socket, address, busy } of this.#open) {
      if (address === crowd) {
        if (!busy) {
          this.#shed(socket);
          return;
        }
        newest = socket;
      }
      if (!busy && socket !== newcomer) idle ??= socket;
    }
    const victim = idle ?? newest;
    if (victim !== undefined) this.#shed(victim);
  }

  #remove(socket: Socket): Connection | undefined {
    const at = this.#open.findIndex((each) => each.socket === socket);
    return at === -1 ? undefined : this.#open.splice(at, 1)[0];
  }

  #shed(socket: Socket): void {
    this.#remove(socket);
    socket.destroy();
    this.#dropped();
  }

  #mostFrequentAddress(): string {
    const counts = new Map<string, number>();
    for (const { address } of this.#open) counts.set(address, (counts.get(address) ?? 0) + 1);
    return [...counts].reduce((most, entry) => (entry[1] > most[1] ? entry : most))[0];
  }
}
