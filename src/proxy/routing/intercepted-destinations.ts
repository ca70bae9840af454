import type { Protocol } from '../http/protocol.ts';
import type { IncomingRequest } from '../streams/message.ts';
import type { Destination } from './destination.ts';
import type { DestinationFinder } from './destinations.ts';
import type { AskedDestination } from './forward-destination.ts';

/** Where requests go that came through a CONNECT whose TLS ended here: to what that asked for, and nowhere else. */
export class InterceptedDestinations implements DestinationFinder {
  readonly #current: () => DestinationFinder;
  readonly #asked: AskedDestination;

  /** @param current those in use; asked anew for each request, so that a host that is no longer listed gets no token. */
  constructor(current: () => DestinationFinder, asked: AskedDestination) {
    this.#current = current;
    this.#asked = asked;
  }

  get ownNames(): ReadonlySet<string> | undefined {
    return this.#current().ownNames;
  }

  find(request: IncomingRequest): Destination {
    return this.#current().findIntercepted(this.#asked, request);
  }

  findIntercepted(asked: AskedDestination, request: IncomingRequest): Destination {
    return this.#current().findIntercepted(asked, request);
  }

  spoken(): ReadonlyMap<string, Protocol | undefined> {
    return this.#current().spoken();
  }

  /** They are the listener's to close. */
  close(): void {}
}
