import type { CheckContext, Finding } from '../../src/check/check-context.ts';
import { systemClock } from '../../src/platform/time/clock.ts';

/** The system's clock, and no end of time. */
export function examination(settings: Partial<CheckContext> = {}): CheckContext {
  return { clock: systemClock, signal: new AbortController().signal, isOffline: false, ...settings };
}

/** `FAIL what: detail → remedy`, a line each. */
export function lines(findings: readonly Finding[]): string[] {
  return findings.map((finding) => {
    const row = `${finding.verdict} ${finding.what}: ${finding.detail}`;
    return finding.verdict === 'ok' ? row : `${row} → ${finding.remedy}`;
  });
}

/** What is printed below the heading of a credential or route. */
export function below(heading: string, printed: string): string {
  return printed.split('\n\n').find((part) => part.startsWith(`${heading}\n`)) ?? '';
}
