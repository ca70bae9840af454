/**
 * Builds the collector that the tests of traces send to into .cache/tracing, once for each state of its sources: OpenTelemetry's own,
 * from the Go module proxy, with OTLP at one end and a printer at the other. Prints how long it took.
 */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installOnce } from '../../support/installed-once.ts';
import { COLLECTOR } from './collector.ts';

const SOURCES = join(import.meta.dirname, 'collector');

const outcome = await installOnce({
  name: 'tracing, collector',
  made: COLLECTOR,
  sources: { directory: SOURCES, files: '{go.mod,go.sum,main.go}' },
  install: () =>
    promisify(execFile)('go', ['build', '-ldflags', '-s -w', '-o', COLLECTOR, '.'], {
      cwd: SOURCES,
      env: { ...process.env, CGO_ENABLED: '0' },
    }),
});
if (outcome === 'failed') process.exitCode = 1;
