/**
 * Builds the collector that the tests of traces send to into .cache/tracing, once for each state of its sources: OpenTelemetry's own,
 * from the Go module proxy, with OTLP at one end and a printer at the other. Prints how long it took.
 */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { COLLECTOR } from './collector.ts';

const SOURCES = join(import.meta.dirname, 'collector');
const STAMP = `${COLLECTOR}.installed`;

const digest = createHash('sha256');
for (const file of ['go.mod', 'go.sum', 'main.go']) digest.update(await readFile(join(SOURCES, file)));
const version = digest.digest('hex');
if (!existsSync(COLLECTOR) || (await readFile(STAMP, 'utf8').catch(() => '')) !== version) {
  const beganAtMs = performance.now();
  await mkdir(dirname(COLLECTOR), { recursive: true });
  await promisify(execFile)('go', ['build', '-ldflags', '-s -w', '-o', COLLECTOR, '.'], {
    cwd: SOURCES,
    env: { ...process.env, CGO_ENABLED: '0' },
  });
  await writeFile(STAMP, version);
  const seconds = (performance.now() - beganAtMs) / 1000;
  process.stdout.write(`tracing, collector: installed (${seconds.toFixed(0)} s)\n`);
}
