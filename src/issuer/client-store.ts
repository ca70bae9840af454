/** The registered clients as a live value: one immutable set at a time, replaced as a whole. */

import { decodeFormComponent } from '../platform/form.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { type Client, type ClientDefinition, defineClient } from './client.ts';
import type { ScryptCost } from './scrypt-hash.ts';

export interface ClientSet {
  readonly size: number;
  /** Every scrypt hash in the set, as text. */
  readonly hashes: ReadonlySet<string>;
  /** The highest scrypt cost in the set; absent if no secret in it is hashed. */
  readonly dearestCost?: ScryptCost;
  find(clientId: string): Client | undefined;
}

export interface ClientStore {
  current(): ClientSet;
  replace(clients: ClientSet): void;
}

export function createClientStore(initial: ClientSet): ClientStore {
  let clients = initial;
  return {
    current: () => clients,
    replace(next) {
      clients = next;
    },
  };
}

/**
 * A set in which every Basic field names at most one client, however it is read.
 * @param describe returns the key under which a client is defined, for messages.
 * @throws {ConfigurationError} if two ids are the same, or one is the form-encoding of the other.
 */
export function createClientSet(
  clients: readonly Client[],
  describe: (index: number) => string = (index) => `clients[${index}]`,
): ClientSet {
  const byId = new Map<string, Client>();
  const problems: Problem[] = [];
  for (const [index, client] of clients.entries()) {
    if (byId.has(client.clientId)) {
      problems.push({ key: describe(index), value: client.clientId, expected: 'a client id used only once' });
    }
    byId.set(client.clientId, client);
  }
  for (const [index, { clientId }] of clients.entries()) {
    const decoded = decodeFormComponent(clientId);
    if (decoded !== undefined && decoded !== clientId && byId.has(decoded)) {
      problems.push({
        key: describe(index),
        value: clientId,
        expected: `a client id that is not the form-encoded writing of another, ${JSON.stringify(decoded)}`,
      });
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);

  const hashes = clients
    .flatMap(({ secrets }) => secrets)
    .flatMap((secret) => (secret.kind === 'scrypt' ? [secret.hash] : []));
  const dearest = hashes.reduce<ScryptCost | undefined>(
    (most, { cost }) => (most === undefined || work(cost) > work(most) ? cost : most),
    undefined,
  );
  return {
    size: byId.size,
    hashes: new Set(hashes.map(({ text }) => text)),
    ...(dearest === undefined ? {} : { dearestCost: dearest }),
    find: (clientId) => byId.get(clientId),
  };
}

/** The work of a derivation, in blocks mixed. */
function work({ ln, r, p }: ScryptCost): number {
  return 2 ** ln * r * p;
}

/**
 * The set of clients defined in a program.
 * @throws {ConfigurationError} with every problem.
 */
export function defineClients(definitions: readonly ClientDefinition[]): ClientSet {
  const problems: Problem[] = [];
  const clients = definitions.flatMap(
    (definition, index) => defineClient(definition, (field) => `clients[${index}].${field}`, problems) ?? [],
  );
  if (problems.length > 0) throw new ConfigurationError(problems);
  return createClientSet(clients);
}
