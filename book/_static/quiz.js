// Marks the quizzes of a page: each question is a form, its explanations a list in the same order.
"use strict";
for (const quiz of document.querySelectorAll("section.quiz")) {
  const questions = [...quiz.querySelectorAll("form.quiz-question")];
  const score = quiz.querySelector(".quiz-score");
  const firstTries = new Map();

  for (const question of questions) {
    const remarks = [...question.querySelectorAll("details li")];
    const said = question.querySelector(".quiz-said");
    const details = question.querySelector("details");
    details.hidden = true; // until the question has been answered right
    question.addEventListener("submit", (event) => {
      event.preventDefault();
      const chosen = question.querySelector("input:checked");
      if (!chosen) {
        said.className = "quiz-said";
        said.textContent = "Choose an answer first.";
        return;
      }
      const remark = remarks[Number(chosen.value)];
      const right = remark.hasAttribute("data-right");
      said.className = `quiz-said ${right ? "quiz-right" : "quiz-wrong"}`;
      said.innerHTML = remark.innerHTML;
      if (!firstTries.has(question)) firstTries.set(question, right);
      if (right) details.hidden = false;
      tell();
    });
    question.addEventListener("change", () => {
      said.className = "quiz-said";
      said.textContent = "";
    });
  }

  function tell() {
    const right = [...firstTries.values()].filter(Boolean).length;
    const answered = firstTries.size;
    const left = questions.length - answered;
    score.textContent =
      `Right at the first try: ${right} of ${answered}` +
      (left ? `; ${left} ${left === 1 ? "question" : "questions"} left.` : ".");
  }
}
