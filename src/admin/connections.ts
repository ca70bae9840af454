/** The admin listener's connections: a bounded number, each for one request; most places are for addresses that have none. */

import type { Socket } from 'node:net';
import type { Clock } from '../platform/time/clock.ts';

/** The kubelet, a few Prometheus replicas and some people need a dozen. */
export const MAX_CONNECTIONS = 192;

/** Of these, those that came while their address had another one. The other places are each for another address. */
const MAX_FURTHER = 32;

/** How long a connection may be open before the head of its request is there. */
const REQUEST_WITHIN_MS = 1000;

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** Whether its address had another one when it came. */
  readonly isFurther: boolean;
  /** Ends the wait for its request; undefined once that is there. */
  asked: (() => void) | undefined;
}

export class AdminConnections {
  /** So few can be searched; a `Map` would keep closed ones until a full collection (docs/decisions/0027). */
  readonly #open: Connection[] = [];

  readonly #clock: Clock;
  readonly #refused: () => void;

  /** @param refused is called for each that finds no place. */
  constructor(clock: Clock, refused: () => void) {
    this.#clock = clock;
    this.#refused = refused;
  }

  /**
   * Closes it at once if there is no place for it: a connection that has a place keeps it. There is one for an address
   * that has none, and a further one for an address that has no more than there are further places left.
   */
  add(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const ofAddress = this.#open.filter((each) => each.address === address).length;
    const furtherLeft = MAX_FURTHER - this.#open.filter((each) => each.isFurther).length;
    if (this.#open.length >= MAX_CONNECTIONS || ofAddress > furtherLeft) {
      socket.destroy();
      this.#refused();
      return;
    }
    const connection: Connection = {
      socket,
      address,
      isFurther: ofAddress > 0,
      // What came while the process was stopped is read before it counts as late.
      asked: this.#clock.after(REQUEST_WITHIN_MS, () =>
        setImmediate(() => {
          if (connection.asked !== undefined) socket.destroy();
        }),
      ),
    };
    this.#open.push(connection);
    socket.once('close', () => {
      connection.asked?.();
      this.#open.splice(this.#open.indexOf(connection), 1);
    });
  }

  /** Reports that a request has come. False if it is not the first one. */
  begin(socket: Socket): boolean {
    const connection = this.#open.find((each) => each.socket === socket);
    if (connection?.asked === undefined) return false;
    connection.asked();
    connection.asked = undefined;
    return true;
  }
}
