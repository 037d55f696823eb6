"""`parapipe export --to genai` with a plan of its own for the tokens."""

from tests.cases.genai_folder import write_genai_folder, write_plans


def test_the_command_takes_the_plan_of_tokens_by_its_file(parapipe, tmp_path):
    write_genai_folder(tmp_path)
    files = [tmp_path / "prompt.json", tmp_path / "token.json"]
    for plan, file in zip(write_plans(tmp_path), files, strict=True):
        plan.save(file)
    ended = parapipe(
        "export", files[0], tmp_path / "out", "--to", "genai", "--token-plan", files[1]
    )
    assert "\nprompt " in ended.out
    assert "\ntoken " in ended.out
    assert (tmp_path / "out" / "genai_config.json").exists()
