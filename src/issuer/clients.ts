import { createHash } from 'node:crypto';
import { formats, type ValueFormat } from '../config/values.ts';
import { decodeFormComponent } from '../platform/form.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { parseScryptHash, type ScryptCost, type ScryptHash } from './secret-hashing.ts';

export interface Client {
  readonly clientId: string;
  /** Two during a rotation: either is right. */
  readonly secrets: readonly StoredSecret[];
  /** Also granted if the request names none. */
  readonly scopes: readonly string[];
  /** Values of `aud`; if empty, the service's default. */
  readonly audience: readonly string[];
  /** Whole seconds; the service's default if absent. */
  readonly tokenLifetimeSeconds?: number;
  /** Its requests need a proof (RFC 9449 §5.2). */
  readonly dpopBoundAccessTokens?: true;
}

/** Comparing digests takes the same time for all lengths. */
type StoredSecret =
  | { readonly kind: 'sha256'; readonly digest: Buffer }
  | { readonly kind: 'scrypt'; readonly hash: ScryptHash };

interface ClientDefinition {
  readonly clientId?: string | undefined;
  /** In clear. `secretHash` is from `token-sidecar issuer hash`. */
  readonly clientSecret?: string | undefined;
  readonly secretHash?: string | undefined;
  /** The next secret before a rotation, the old one after it. */
  readonly secondClientSecret?: string | undefined;
  readonly secondSecretHash?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly audience?: readonly string[] | undefined;
  /** A duration such as `60s`. */
  readonly tokenLifetime?: string | undefined;
  /** `true` or `false` */
  readonly dpopBoundAccessTokens?: string | undefined;
}

export type ClientField = keyof ClientDefinition;

/** RFC 6749 §3.3. */
const SCOPE_TOKEN = /^[\x21\x23-\x5B\x5D-\x7E]+$/;

const MIN_LIFETIME_SECONDS = 1;
const MAX_LIFETIME_SECONDS = 30 * 86_400;

export const tokenLifetime: ValueFormat<number> = {
  expected: 'a duration of whole seconds from 1s to 30d',
  parse(text) {
    const ms = formats.duration.parse(text);
    if (ms === undefined || ms % 1000 !== 0) return undefined;
    const seconds = ms / 1000;
    return seconds >= MIN_LIFETIME_SECONDS && seconds <= MAX_LIFETIME_SECONDS ? seconds : undefined;
  },
};

/**
 * Adds mistakes to `problems`, without secrets.
 * @returns undefined if anything is wrong.
 */
export function defineClient(
  definition: ClientDefinition,
  keyOf: (field: ClientField) => string,
  problems: Problem[],
): Client | undefined {
  const before = problems.length;
  const { clientId, scopes = [], audience = [] } = definition;
  if (clientId === undefined || clientId === '') {
    problems.push({ key: keyOf('clientId'), expected: 'the identifier of the client' });
  }
  const secrets = storeSecrets(definition, keyOf, problems);
  for (const scope of scopes) {
    if (!isScopeToken(scope)) {
      problems.push({
        key: keyOf('scopes'),
        value: scope,
        expected: 'scopes of printable ASCII without space, " and \\',
      });
    }
  }
  if (audience.includes('')) {
    problems.push({ key: keyOf('audience'), value: '', expected: 'audiences that are not empty' });
  }
  const tokenLifetimeSeconds =
    definition.tokenLifetime === undefined ? undefined : tokenLifetime.parse(definition.tokenLifetime);
  if (definition.tokenLifetime !== undefined && tokenLifetimeSeconds === undefined) {
    problems.push({
      key: keyOf('tokenLifetime'),
      value: definition.tokenLifetime,
      expected: tokenLifetime.expected,
    });
  }
  const bound = definition.dpopBoundAccessTokens;
  if (bound !== undefined && bound !== 'true' && bound !== 'false') {
    problems.push({ key: keyOf('dpopBoundAccessTokens'), value: bound, expected: 'true or false' });
  }
  if (problems.length > before || clientId === undefined) return undefined;
  return {
    clientId,
    secrets,
    scopes: [...new Set(scopes)],
    audience: [...new Set(audience)],
    ...(tokenLifetimeSeconds === undefined ? {} : { tokenLifetimeSeconds }),
    ...(bound === 'true' ? { dpopBoundAccessTokens: true } : {}),
  };
}

export function isScopeToken(text: string): boolean {
  return SCOPE_TOKEN.test(text);
}

export function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function storeSecrets(
  definition: ClientDefinition,
  keyOf: (field: ClientField) => string,
  problems: Problem[],
): readonly StoredSecret[] {
  const { clientSecret, secretHash, secondClientSecret, secondSecretHash } = definition;
  if (clientSecret === undefined && secretHash === undefined) {
    problems.push({ key: keyOf('clientSecret'), expected: `either this or ${keyOf('secretHash')}` });
  }
  for (const [clear, hashed] of [
    ['clientSecret', 'secretHash'],
    ['secondClientSecret', 'secondSecretHash'],
  ] as const) {
    if (definition[clear] === undefined || definition[hashed] === undefined) continue;
    problems.push({ key: keyOf(clear), expected: `either this or ${keyOf(hashed)}, not both` });
  }
  return [
    ...storeClear(clientSecret, keyOf('clientSecret'), problems),
    ...storeHashed(secretHash, keyOf('secretHash'), problems),
    ...storeClear(secondClientSecret, keyOf('secondClientSecret'), problems),
    ...storeHashed(secondSecretHash, keyOf('secondSecretHash'), problems),
  ];
}

function storeClear(secret: string | undefined, key: string, problems: Problem[]): StoredSecret[] {
  if (secret === undefined) return [];
  if (secret === '') problems.push({ key, expected: 'a secret that is not empty' });
  return [{ kind: 'sha256', digest: sha256(secret) }];
}

function storeHashed(text: string | undefined, key: string, problems: Problem[]): StoredSecret[] {
  if (text === undefined) return [];
  const hash = parseScryptHash(text);
  if (hash !== undefined) return [{ kind: 'scrypt', hash }];
  problems.push({ key, expected: 'a hash made by `token-sidecar issuer hash`' });
  return [];
}

export interface ClientSet {
  readonly size: number;
  readonly hashes: ReadonlySet<string>;
  /** Absent if no secret is hashed. */
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
 * Every Basic field names at most one client.
 * @param describe returns a client's key, for messages.
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

function work({ ln, r, p }: ScryptCost): number {
  return 2 ** ln * r * p;
}

/** @throws {ConfigurationError} with every problem. */
export function defineClients(definitions: readonly ClientDefinition[]): ClientSet {
  const problems: Problem[] = [];
  const clients = definitions.flatMap(
    (definition, index) => defineClient(definition, (field) => `clients[${index}].${field}`, problems) ?? [],
  );
  if (problems.length > 0) throw new ConfigurationError(problems);
  return createClientSet(clients);
}
