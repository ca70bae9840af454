/** A reporter that writes each result as a line of JSON as soon as it is there, so that a run may be ended at any time. */

import { appendFileSync } from 'node:fs';

class ResultsAsTheyCome {
  readonly #file = process.env['MUTATION_RESULTS'] as string;

  onDryRunCompleted(): void {
    appendFileSync(this.#file, '"begun"\n');
  }

  onMutantTested(result: object): void {
    appendFileSync(this.#file, `${JSON.stringify(result)}\n`);
  }

  onMutationTestReportReady(): void {
    appendFileSync(this.#file, '"complete"\n');
  }
}

export const strykerPlugins = [
  { kind: 'Reporter', name: 'results-as-they-come', injectableClass: ResultsAsTheyCome },
];
