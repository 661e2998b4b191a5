/** How long a result is shared by all requests for it, in ms. */
const sharedMs = 5000;

/**
 * Shares reads among all scrapes and open pages: however many ask for the same, by `idOf`, Redis is asked once every
 * five seconds. A failed read is not kept.
 */
export function shareReads<Question, Answer>(
  read: (question: Question, at: number) => Promise<Answer>,
  now: () => number,
  idOf: (question: Question) => string = () => '',
): (question: Question) => Promise<Answer> {
  const readings = new Map<string, { at: number; answer: Promise<Answer> }>();
  return async (question) => {
    const at = now();
    // Its age is negative if the clock was set back.
    for (const [old, reading] of readings) if (Math.abs(at - reading.at) >= sharedMs) readings.delete(old);
    const id = idOf(question);
    const reading = readings.get(id) ?? { at, answer: read(question, at) };
    readings.set(id, reading);
    try {
      return await reading.answer;
    } catch (error) {
      if (readings.get(id) === reading) readings.delete(id);
      throw error;
    }
  };
}
