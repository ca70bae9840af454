/** The listener's conformance, by h2spec: RFC 7540, as RFC 9113 leaves it, and RFC 7541. */

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { routeTo, startSidecar } from '../../wire/sidecar.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';
import { GO_PROGRAMS } from '../grpc/programs.ts';

/** 145, and the one that h2spec calls strict. */
const CASES = 146;

/** By section and what is sent: why the sidecar does otherwise. */
const OTHERWISE = new Map([
  [
    '3.5. HTTP/2 Connection Preface: Sends invalid connection preface',
    'what is no preface is HTTP/1.1 on a listener that serves both; the sidecar answers it in that version',
  ],
]);

interface Report {
  readonly cases: readonly string[];
  readonly failed: readonly string[];
  readonly skipped: readonly string[];
  /** What h2spec says of each failure. */
  readonly output: string;
}

async function h2spec(port: number): Promise<Report> {
  const report = await temporaryFile('h2spec.xml', '');
  const output = await new Promise<string>((resolve, reject) => {
    const args = ['--strict', '--port', String(port), '--junit-report', report];
    execFile(join(GO_PROGRAMS, 'h2spec'), args, (error, stdout) => {
      // It exits 1 where a case fails.
      if (typeof error?.code === 'string') reject(error);
      else resolve(stdout);
    });
  });
  const cases: string[] = [];
  const failed: string[] = [];
  const skipped: string[] = [];
  const xml = await readFile(report, 'utf8');
  for (const [, suite, body = ''] of xml.matchAll(/<testsuite name="([^"]*)"(.*?)<\/testsuite>/gs)) {
    for (const [, sent, result = ''] of body.matchAll(
      /<testcase [^>]*classname="([^"]*)"[^>]*>(.*?)<\/testcase>/gs,
    )) {
      const name = `${suite}: ${sent}`;
      cases.push(name);
      if (result.includes('<skipped')) skipped.push(name);
      else if (result !== '') failed.push(name);
    }
  }
  return { cases, failed, skipped, output: output.slice(output.indexOf('Failures:')) };
}

/** An upstream of HTTP/1.1 that takes what comes; some cases want an answer that has a body. */
async function startUpstream(): Promise<AddressInfo> {
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => response.end('x'.repeat(100)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return server.address() as AddressInfo;
}

it('h2spec finds nothing that the listener does otherwise, but for what is listed', async () => {
  const { port } = await startUpstream();
  const sidecar = await startSidecar({ routes: [routeTo({ address: { host: '127.0.0.1', port } })] });
  const { cases, failed, skipped, output } = await h2spec(sidecar.address.port);
  expect(cases).toHaveLength(CASES);
  expect(skipped).toEqual([]);
  expect(failed, output).toEqual([...OTHERWISE.keys()]);
});

it('what is no preface is answered in HTTP/1.1, and the connection closed', async () => {
  const sidecar = await startSidecar({ routes: [] });
  const client = await sidecar.connect();
  client.send('INVALID CONNECTION PREFACE\r\n\r\n');
  expect((await client.response()).status).toBe(400);
  await client.closed();
});
