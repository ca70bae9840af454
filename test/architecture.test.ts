import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const SRC = join(import.meta.dirname, '../src');

/** What each room may import from, from the top floor down; data flows one way. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  launcher: ['main', 'platform'],
  main: ['cli', 'config', 'platform'],
  cli: [
    'check',
    'demo',
    'broker',
    'gateway',
    'sidecar',
    'injector',
    'issuer',
    'redirect',
    'config',
    'platform',
  ],
  check: ['sidecar', 'token', 'config', 'platform'],
  demo: ['sidecar', 'issuer', 'admin', 'config', 'platform'],
  broker: ['sidecar', 'injector', 'token', 'admin', 'config', 'callers', 'platform'],
  gateway: ['sidecar', 'proxy', 'admin', 'config', 'callers', 'platform'],
  sidecar: ['proxy', 'token', 'redirect', 'admin', 'config', 'platform'],
  injector: ['token', 'admin', 'config', 'callers', 'platform'],
  issuer: ['admin', 'config', 'platform'],
  proxy: ['token', 'config', 'platform'],
  token: ['config', 'platform'],
  redirect: ['config', 'platform'],
  admin: ['config', 'platform'],
  config: ['platform'],
  callers: ['platform'],
  platform: [],
};

/** What each room of the platform may import of the others. Files directly in src/platform/ are known to all but `time`. */
const MAY_IMPORT_IN_PLATFORM: Readonly<Record<string, readonly string[]>> = {
  tls: ['mounted', 'x509', 'log', 'time'],
  mounted: ['time'],
  kubernetes: ['net', 'log', 'time'],
  dns: ['net', 'limits', 'time'],
  net: ['process', 'limits', 'time'],
  x509: ['log', 'limits', 'time'],
  process: ['log', 'time'],
  log: ['time'],
  files: [],
  limits: ['time'],
  time: [],
};

/**
 * What each room of the data path may import of the others. Files directly in src/proxy/ build it, or are known to all
 * but the first four rooms.
 */
const MAY_IMPORT_IN_PROXY: Readonly<Record<string, readonly string[]>> = {
  io: [],
  http: [],
  http1: ['http'],
  http2: ['http'],
  tunnel: ['io'],
  streams: ['tunnel', 'http'],
  routing: ['streams', 'http'],
  upstream: ['streams', 'tunnel', 'http1', 'http2', 'http', 'io'],
  recording: ['streams', 'http'],
  transaction: ['routing', 'streams', 'http', 'io'],
  downstream: ['transaction', 'streams', 'tunnel', 'http1', 'http2', 'http', 'io'],
  tls: ['downstream', 'transaction', 'routing', 'streams', 'http', 'io'],
  capture: ['tls', 'downstream', 'routing', 'streams', 'tunnel', 'io'],
};

/** What would be against the table, and why it is not. */
const EXCEPTIONS_IN_PROXY = [
  // The answer to TRACE is HTTP/1.1's text by its media type, whatever carries it (RFC 9112 §10.1).
  'proxy/transaction/local-reply.ts proxy/http1/serialize.ts',
];

/** They know nothing of the data path around them, nor of tokens, configuration and logs. */
const PURE_IN_PROXY = ['io', 'http', 'http1', 'http2'];

const OPEN_TO_PURE = [
  'platform/time/clock.ts',
  'platform/errors.ts',
  'platform/exit-status.ts',
  'platform/limits/token-bucket.ts',
  'platform/net/socket-tables.ts',
  'platform/net/connect.ts',
  'platform/net/lookups.ts',
];

/** What the data path may know of the token engine. */
const TOKEN_FOR_PROXY = [
  'token/bearer-source.ts',
  'token/dpop/request-proof.ts',
  'token/egress/egress-tunnel.ts',
];

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));

function roomOf(file: string): string {
  const [first, ...rest] = file.split('/');
  return rest.length > 0 ? (first as string) : file.replace(/\.ts$/, '');
}

/** The room of a file inside src/proxy or src/platform; '' for those directly in it. */
function innerRoomOf(file: string): string {
  const [, room, ...rest] = file.split('/');
  return rest.length > 0 ? (room as string) : '';
}

interface Import {
  readonly from: string;
  /** Erased when run: it costs nothing. */
  readonly typeOnly: boolean;
  readonly specifier: string;
}

const imports: readonly Import[] = files.flatMap((from) => {
  const text = readFileSync(join(SRC, from), 'utf8');
  const found = text.matchAll(/^(?:import|export)\s(?:[^;=]*?\sfrom\s)?'([^']+)'|\bimport\('([^']+)'\)/gm);
  return [...found].map(([statement, fixed, dynamic]) => ({
    from,
    specifier: (fixed ?? dynamic) as string,
    typeOnly: /^(?:import|export) type\b/.test(statement),
  }));
});

const internal = imports
  .filter(({ specifier }) => specifier.startsWith('.'))
  .map(({ from, specifier, typeOnly }) => ({
    from,
    to: relative(SRC, resolve(SRC, dirname(from), specifier)),
    typeOnly,
  }))
  .filter(({ to }) => !to.startsWith('..'));

it('finds the imports it judges', () => {
  expect(files.length).toBeGreaterThan(50);
  expect(internal.length).toBeGreaterThan(150);
});

describe('layering', () => {
  it.each(Object.entries(MAY_IMPORT))('%s imports only from rooms below it', (room, allowed) => {
    const wrong = internal
      .filter(({ from }) => roomOf(from) === room)
      .filter(({ to }) => ![room, ...allowed].includes(roomOf(to)));
    expect(wrong).toEqual([]);
  });

  it.each(Object.entries(MAY_IMPORT).filter(([room]) => !files.includes(`${room}.ts`)))(
    'the README of %s says what it imports',
    (room, allowed) => {
      const text = readFileSync(join(SRC, room, 'README.md'), 'utf8');
      expect(text).toContain(`\n- It imports: ${allowed.join(', ') || 'no other room'}.\n`);
    },
  );

  it('every room is known here', () => {
    expect(files.map(roomOf).filter((room) => !(room in MAY_IMPORT))).toEqual([]);
  });

  it('the data path knows of tokens only how to ask for a header value and its proof, and of their room the way through an egress proxy', () => {
    const wrong = internal
      .filter(({ from, to }) => roomOf(from) === 'proxy' && roomOf(to) === 'token')
      .filter(({ to }) => !TOKEN_FOR_PROXY.includes(to));
    expect(wrong).toEqual([]);
  });

  it('no two files import each other when run, however long the way round, and no two rooms be it for types', () => {
    const next = new Map<string, string[]>();
    const run = internal.filter(({ from, to, typeOnly }) => !typeOnly || roomOf(from) !== roomOf(to));
    for (const { from, to } of run) next.set(from, [...(next.get(from) ?? []), to]);
    const done = new Set<string>();
    const cycles: string[][] = [];
    function visit(file: string, path: readonly string[]): void {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file]);
      if (done.has(file) || path.includes(file)) return;
      for (const to of next.get(file) ?? []) visit(to, [...path, file]);
      done.add(file);
    }
    for (const file of files) visit(file, []);
    expect(cycles).toEqual([]);
  });
});

describe('layering of the platform', () => {
  const inPlatform = internal.filter(({ from }) => roomOf(from) === 'platform');

  it.each(Object.entries(MAY_IMPORT_IN_PLATFORM))('%s imports only from rooms below it', (room, allowed) => {
    const wrong = inPlatform
      .filter(({ from }) => innerRoomOf(from) === room)
      .filter(({ to }) => ![room, '', ...allowed].includes(innerRoomOf(to)));
    expect(wrong).toEqual([]);
  });

  it('every room is known here', () => {
    const rooms = new Set(files.filter((file) => roomOf(file) === 'platform').map(innerRoomOf));
    rooms.delete('');
    expect([...rooms].filter((room) => !(room in MAY_IMPORT_IN_PLATFORM))).toEqual([]);
  });
});

describe('layering of the data path', () => {
  const inProxy = internal.filter(({ from }) => roomOf(from) === 'proxy');

  it.each(Object.entries(MAY_IMPORT_IN_PROXY))('%s imports only from rooms below it', (room, allowed) => {
    const wrong = inProxy
      .filter(({ from, to }) => innerRoomOf(from) === room && roomOf(to) === 'proxy')
      .filter(({ to }) => ![room, '', ...allowed].includes(innerRoomOf(to)))
      .filter(({ from, to }) => !EXCEPTIONS_IN_PROXY.includes(`${from} ${to}`));
    expect(wrong).toEqual([]);
  });

  it('every room is known here', () => {
    const rooms = new Set(files.filter((file) => roomOf(file) === 'proxy').map(innerRoomOf));
    rooms.delete('');
    expect([...rooms].filter((room) => !(room in MAY_IMPORT_IN_PROXY))).toEqual([]);
  });

  it.each(PURE_IN_PROXY)(
    '%s knows nothing outside its rooms but clock, errors, how the kernel writes addresses and how connections are made and names found',
    (room) => {
      const wrong = inProxy
        .filter(({ from }) => innerRoomOf(from) === room)
        .filter(({ to }) => roomOf(to) !== 'proxy' || innerRoomOf(to) === '')
        .filter(({ to }) => !OPEN_TO_PURE.includes(to));
      expect(wrong).toEqual([]);
    },
  );

  it('codecs use nothing of Node, but to tell addresses apart', () => {
    const wrong = imports
      .filter(
        ({ from }) => roomOf(from) === 'proxy' && ['http', 'http1', 'http2'].includes(innerRoomOf(from)),
      )
      .filter(({ specifier }) => specifier.startsWith('node:'))
      .filter(({ from, specifier }) => from !== 'proxy/http/syntax.ts' || specifier !== 'node:net');
    expect(wrong).toEqual([]);
  });
});

describe('banned', () => {
  const wholePackages: readonly (readonly [string, string])[] = [
    ['@prometheus-io/client', 'its entry point costs 6 MB in every pod: import from platform/prometheus.ts'],
    ['prom-client', 'it continues as @prometheus-io/client'],
    ['http-proxy', 'it forwards some requests ambiguously: a benchmark baseline only'],
  ];
  it.each(wholePackages)('%s: %s', (name) => {
    expect(imports.filter(({ specifier, from }) => specifier === name && !from.endsWith('.d.ts'))).toEqual(
      [],
    );
  });

  it('undici, whole or in parts: it costs 5 to 12 MB in every pod; use platform/net/node-http.ts', () => {
    expect(imports.filter(({ specifier }) => /^undici($|\/)/.test(specifier))).toEqual([]);
  });

  it('importing node:http: that loads 7 MB in every pod; use platform/net/node-http.ts', () => {
    expect(imports.filter(({ specifier, typeOnly }) => specifier === 'node:http' && !typeOnly)).toEqual([]);
  });

  it('connections and agents of Node’s own: platform/net/connect.ts has the rules for several addresses and for names', () => {
    const own = /import \{[^}]*\bconnect\b[^}]*\} from 'node:(?:net|tls)'|\bnew https?\.Agent\(/;
    // They lead to this machine: the second to a socket in a directory.
    const allowed = ['demo/parties.ts', 'platform/files/private-directory.ts'];
    const wrong = files
      .filter((file) => !allowed.includes(file) && file !== 'platform/net/connect.ts')
      .filter((file) => {
        const text = readFileSync(join(SRC, file), 'utf8');
        return own.test(text) && !text.includes('byTheRules(');
      });
    expect(wrong).toEqual([]);
  });

  it('@kubernetes/client-node outside platform/kubernetes/: it would cost the sidecar 70 MB', () => {
    const wrong = imports.filter(
      ({ specifier, from }) =>
        specifier.startsWith('@kubernetes/') && !from.startsWith('platform/kubernetes/'),
    );
    expect(wrong).toEqual([]);
  });

  it('reading process.env or a clock of one’s own, outside the places that pass them in', () => {
    const allowed = ['main.ts', 'platform/time/clock.ts', 'platform/process/thread-pool.ts'];
    const wrong = files
      .filter((file) => !allowed.includes(file) && roomOf(file) !== 'demo')
      .filter((file) => /process\.env|Date\.now\(|new Date\(\)/.test(readFileSync(join(SRC, file), 'utf8')));
    expect(wrong).toEqual([]);
  });
});
