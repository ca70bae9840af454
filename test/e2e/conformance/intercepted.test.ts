/** The same suites with apps that speak TLS, which the sidecar ends: both versions of HTTP on either side. */

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TRUST } from '../../../src/injector/pod/pod.ts';
import { startWorld, type World } from '../interception/start-world.ts';
import { API, API_ADDRESS, OTHER_PORT, type WorldMode } from '../interception/surroundings.ts';
import {
  ALL_PROTOCOLS,
  NO_COMPRESSION,
  PROTOCOLS_OF_HTTP1,
  runConnectConformance,
} from './connect-conformance.ts';
import { GO_CLIENT, startGoServer } from './grpc-interop.ts';
import { startReferenceServer } from './reference-server.ts';

const AUTHORITY = join(TRUST.directory, 'ca.crt');

describe('connectconformance in the mode hosts', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld('hosts');
  });
  afterAll(() => world.stop());

  it.each([
    { spoken: 'HTTP/1.1', version: 'HTTP_VERSION_1', protocols: PROTOCOLS_OF_HTTP1, cases: 364 },
    { spoken: 'HTTP/2', version: 'HTTP_VERSION_2', protocols: ALL_PROTOCOLS, cases: 584 },
  ] as const)('every case passes with $spoken on both sides', async ({ version, protocols, cases }) => {
    const { enter, identity } = world;
    await startReferenceServer({ version, identity, enter, at: { host: API_ADDRESS, port: OTHER_PORT } });
    const { output, ...outcome } = await runConnectConformance({
      mode: 'server',
      features: { versions: [version], protocols, compressions: NO_COMPRESSION, supportsTls: true },
      excludeCases: [{ useTls: false }],
      program: ['announce.ts', API, String(OTHER_PORT), AUTHORITY],
      enter,
    });
    expect(outcome, output).toEqual({ passed: cases, failed: [] });
  });
});

describe.each<WorldMode>(['forward', 'redirect'])("grpc-go's client in the mode %s", (mode) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(mode);
  });
  afterAll(() => world.stop());

  it.each(GO_CLIENT.cases)('%s', async (testCase) => {
    await startGoServer(OTHER_PORT, world.identity, world.enter);
    const [client, ...args] = GO_CLIENT.command(testCase, { host: API, port: OTHER_PORT, tls: true });
    await world.client(client, args);
  });
});
