import { problem, ProblemError } from '../../contract/problems.ts';
import type { Guard } from '../pipeline.ts';

/**
 * Refuses work beyond what this process can have under way, so that the rest is answered in time: 503
 * `overloaded` is cheap, a queue that only grows is not.
 */
export function shedLoad(limit: number): Guard {
  let underWay = 0;
  return (_request, response) => {
    if (underWay >= limit) {
      throw new ProblemError(problem('overloaded', 'This instance has as much to do as it can.'));
    }
    underWay++;
    response.on('close', () => {
      underWay--;
    });
    return undefined;
  };
}
