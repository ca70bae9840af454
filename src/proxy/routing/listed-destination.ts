import type { Protocol } from '../http/protocol.ts';
import type { IncomingRequest } from '../streams/message.ts';
import type { ActiveRoute } from './active-route.ts';
import type { Destination } from './destination.ts';
import type { DestinationFinder, HostList } from './destinations.ts';
import type { AskedDestination } from './forward-destination.ts';

/** Where requests go that came on a connection to a listed host: there, and nowhere else. */
export class ListedDestination implements DestinationFinder {
  readonly #current: () => DestinationFinder;
  readonly #list: HostList;
  readonly #asked: AskedDestination;

  /** @param current those in use; asked anew for each request, so that a host that is no longer listed gets no token. */
  constructor(current: () => DestinationFinder, list: HostList, asked: AskedDestination) {
    this.#current = current;
    this.#list = list;
    this.#asked = asked;
  }

  get ownNames(): ReadonlySet<string> | undefined {
    return this.#current().ownNames;
  }

  find(request: IncomingRequest): Destination {
    return this.#current().findListed(this.#list, this.#asked, request);
  }

  findListed(list: HostList, asked: AskedDestination, request: IncomingRequest): Destination {
    return this.#current().findListed(list, asked, request);
  }

  routeTo(list: HostList, asked: AskedDestination): ActiveRoute {
    return this.#current().routeTo(list, asked);
  }

  spoken(): ReadonlyMap<string, Protocol | undefined> {
    return this.#current().spoken();
  }

  /** They are the listener's to close. */
  close(): void {}
}
