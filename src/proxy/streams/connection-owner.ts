/** A connection to an upstream that waits for the next request of its owner. */
interface OwnedConnection {
  abandon(): void;
}

/**
 * Whose a connection to an upstream is, once the upstream takes everything on it for one user's (RFC 4559): those of one
 * connection of the app, and of one caller on it. It carries no requests of others, and ends with its owner.
 */
export class ConnectionOwner {
  /** As the gateway knows it; undefined where callers are not told apart. */
  readonly caller: string | undefined;
  readonly #waiting: OwnedConnection[] = [];
  #gone = false;

  constructor(caller: string | undefined) {
    this.caller = caller;
  }

  /** Whether nothing more will be asked. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Whether any of its connections carries no request. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** The connection carries no request: it ends if its owner does. */
  keep(connection: OwnedConnection): void {
    this.#waiting.push(connection);
  }

  /** The connection is in use again, or has ended. */
  release(connection: OwnedConnection): void {
    const index = this.#waiting.indexOf(connection);
    if (index !== -1) this.#waiting.splice(index, 1);
  }

  end(): void {
    this.#gone = true;
    for (const connection of this.#waiting.splice(0)) connection.abandon();
  }
}
