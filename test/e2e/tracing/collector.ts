import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { freePort } from '../../support/free-port.ts';

export const COLLECTOR = join(import.meta.dirname, '../../../.cache/tracing/collector');

/** A collector that prints what it takes. */
export class RunningCollector {
  readonly url: string;
  printed = '';
  readonly #process: ChildProcess;
  #waiting: (() => void)[] = [];

  private constructor(port: number) {
    this.url = `http://127.0.0.1:${port}`;
    const config = {
      receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
      exporters: { debug: { verbosity: 'detailed' } },
      service: {
        telemetry: { metrics: { level: 'none' } },
        pipelines: { traces: { receivers: ['otlp'], exporters: ['debug'] } },
      },
    };
    this.#process = spawn(COLLECTOR, ['--config', `yaml:${JSON.stringify(config)}`], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.printed += text;
        for (const wake of this.#waiting.splice(0)) wake();
      });
    }
    this.#process.once('close', () => {
      for (const wake of this.#waiting.splice(0)) wake();
    });
    onTestFinished(() => this.#stop());
  }

  static async start(): Promise<RunningCollector> {
    const collector = new RunningCollector(await freePort());
    await collector.until(/Everything is ready/);
    return collector;
  }

  /** @throws with what it printed when it ends before that. */
  async until(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.printed)) {
      if (this.#process.exitCode !== null) throw new Error(`the collector ended:\n${this.printed}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  async #stop(): Promise<void> {
    if (this.#process.exitCode !== null) return;
    const closed = once(this.#process, 'close');
    this.#process.kill('SIGTERM');
    await closed;
  }
}
