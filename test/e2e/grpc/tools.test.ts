/** The tools that people try a gRPC service with: grpcurl, ghz and curl. */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { GO_PROGRAMS } from './programs.ts';
import { bearer, startSurroundings, type UpstreamKind } from './surroundings.ts';

const run = promisify(execFile);

const BOUND_MS = 60_000;

/** In JSON a `BytesValue` is a string in Base64. */
const HELLO = JSON.stringify(Buffer.from('hello').toString('base64'));

async function tool(name: string, ...args: string[]): Promise<string> {
  const { stdout } = await run(name, args, { timeout: BOUND_MS, maxBuffer: 1 << 26 });
  return stdout;
}

function grpcurl(...args: string[]): Promise<string> {
  return tool(join(GO_PROGRAMS, 'grpcurl'), '-plaintext', ...args);
}

describe.each<UpstreamKind>(['plain', 'TLS'])('a %s upstream', (upstream) => {
  it('grpcurl learns of services by reflection, and calls one', async () => {
    const { server, sidecar } = await startSurroundings({ upstream });
    expect((await grpcurl(sidecar.address, 'list')).split('\n')).toContain('tokensidecar.e2e.Echo');
    expect(await grpcurl(sidecar.address, 'describe', 'tokensidecar.e2e.Echo')).toContain('rpc Converse');
    expect(JSON.parse(await grpcurl('-d', HELLO, sidecar.address, 'tokensidecar.e2e.Echo/Once'))).toBe(
      JSON.parse(HELLO),
    );
    expect(server.calls.map(({ method }) => method)).toContain('ServerReflectionInfo');
    expect(server.calls.every(({ authorization }) => authorization.join() === bearer(1))).toBe(true);
  });

  it('grpcurl checks health', async () => {
    const { server, sidecar } = await startSurroundings({ upstream });
    const answer = await grpcurl(sidecar.address, 'grpc.health.v1.Health/Check');
    expect(JSON.parse(answer)).toEqual({ status: 'SERVING' });
    expect(server.calls.at(-1)).toMatchObject({ authorization: [bearer(1)], status: 'OK' });
  });

  it.each([
    { server: 'a server that keeps connections', connectionAge: '0' },
    { server: 'a server that ends them by GOAWAY, again and again', connectionAge: '100ms' },
  ])('ghz loads $server: every call succeeds, with the token', async ({ connectionAge }) => {
    const { server, sidecar } = await startSurroundings({ upstream, connectionAge });
    const calls = 5000;
    const args = ['--insecure', '--call=tokensidecar.e2e.Echo/Once', `--data=${HELLO}`, '--format=json'];
    // Calls wait in the client where a connection has as many streams as the sidecar allows: 100.
    const load = [`--total=${calls}`, '--concurrency=250', '--connections=2'];
    const report = JSON.parse(await tool(join(GO_PROGRAMS, 'ghz'), ...args, ...load, sidecar.address));
    expect(report).toMatchObject({ count: calls, statusCodeDistribution: { OK: calls } });
    const served = server.calls.filter(({ method }) => method === 'Once');
    expect(served).toHaveLength(calls);
    expect(served.every(({ authorization }) => authorization.join() === bearer(1))).toBe(true);
  });

  it('curl with prior knowledge of HTTP/2 gets what a server of gRPC answers it', async () => {
    const { server, sidecar } = await startSurroundings({ upstream });
    const url = `http://${sidecar.address}/tokensidecar.e2e.Echo/Once`;
    const args = ['--silent', '--show-error', '--http2-prior-knowledge', '--data-binary', 'x'];
    const answer = await tool(
      'curl',
      ...args,
      '--output',
      '/dev/null',
      '--write-out',
      '%{http_version} %{response_code}',
      url,
    );
    // Its media type is not gRPC's.
    expect(answer).toBe('2 415');
    expect(server.calls).toEqual([]);
  });
});
