import { basename } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Runs the test file that is named like the mutated one first, then other tests of units, then those over sockets,
 * small files before large: most mutants are noticed by the first file, and nothing runs after that.
 */
export class NearestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const mutated = (this.ctx.config.related ?? []).map((file) => basename(file, '.ts'));
    const rank = ({ moduleId }: TestSpecification): number => {
      if (mutated.includes(basename(moduleId, '.test.ts'))) return 0;
      return /\/test\/(wire|integration)\//.test(moduleId) ? 2 : 1;
    };
    return files.toSorted((a, b) => rank(a) - rank(b) || (a.moduleId < b.moduleId ? -1 : 1));
  }
}
