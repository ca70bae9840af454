/**
 * Exports that end, whatever the collector does. The exporter's own time-out is of silence alone: from a collector that sends an
 * octet now and then, each export would keep its spans and its connection for good.
 */

import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { Clock } from '../../platform/time/clock.ts';

export interface EndableExporter {
  readonly exporter: SpanExporter;
  /** Ends its connections, and all that it does; it is of no use afterwards. */
  end(): void;
}

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0];

interface UnderWay {
  readonly ended: Promise<void>;
  giveUp(why: string): void;
}

/** Further ones are refused. One is the rule: only at the end of the program do all that wait go out at once. */
const MAX_CONCURRENT = 30;

/**
 * @param open makes an exporter. Each runs one export at a time. One that has failed or run out of time is never used again:
 * nothing that it may still do counts, and its certificates may be outdated.
 * @param timeoutMs for one export, all of it.
 */
export function exportsInTime(open: () => EndableExporter, timeoutMs: number, clock: Clock): EndableExporter {
  const idle = [open()];
  const underWay = new Set<UnderWay>();
  let isEnded = false;

  const exporter: Required<Pick<SpanExporter, 'export' | 'forceFlush' | 'shutdown'>> = {
    export(spans, done) {
      if (isEnded) return done(failed(ENDED));
      if (underWay.size >= MAX_CONCURRENT) return done(failed('too many exports are under way'));
      const endable = idle.pop() ?? open();
      const { promise, resolve } = Promise.withResolvers<void>();
      /** @returns whether it had not ended before. */
      const conclude = (result: Result): boolean => {
        if (!underWay.delete(own)) return false;
        cancel();
        resolve();
        done(result);
        return true;
      };
      const own: UnderWay = {
        ended: promise,
        giveUp(why) {
          // In this order: the exporter takes an answer that is cut for a success where its status was one.
          conclude(failed(why));
          endable.end();
        },
      };
      underWay.add(own);
      const cancel = clock.after(timeoutMs, () =>
        own.giveUp(`the collector has not answered in whole within ${timeoutMs} ms`),
      );
      endable.exporter.export(spans, (result) => {
        if (!conclude(result)) return;
        if (result.code === FAILED) endable.end();
        else idle.push(endable);
      });
    },

    async forceFlush() {
      await Promise.all([...underWay].map(({ ended }) => ended));
    },

    shutdown: () => exporter.forceFlush(),
  };

  return {
    exporter,
    end() {
      isEnded = true;
      for (const own of [...underWay]) own.giveUp(ENDED);
      for (const endable of idle) endable.end();
    },
  };
}

const ENDED = 'the program has ended';

function failed(why: string): Result {
  return { code: FAILED, error: new Error(why) };
}

/** `ExportResultCode` of OpenTelemetry's core, which is no dependency of ours. */
const FAILED = 1;
